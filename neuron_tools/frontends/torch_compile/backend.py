"""The Dynamo back end: AOTAutograd makes forward and backward graphs, each becomes a `CompiledGraph`.

Found by name through the entry point group `torch_dynamo_backends`.
"""

from __future__ import annotations

import functools
import itertools
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from neuron_tools.frontends import executables
from neuron_tools.frontends.torch_compile import flex_attention
from neuron_tools.frontends.torch_compile.compiled_graph import Callers, CompiledGraph, GraphDescription
from neuron_tools.frontends.torch_compile.device_interface import register_device_interface
from neuron_tools.frontends.torch_compile.naming import frame_root, parameter_names
from neuron_tools.frontends.torch_compile.parted_graph import PartedGraph, depends_on_values
from neuron_tools.frontends.torch_compile.whole_operators import kept_whole

_numbers = itertools.count()


def neuron_backend(gm: fx.GraphModule, example_inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """Compile one Dynamo graph for the `neuron` device.

    Args:
        gm: Dynamo's graph.
        example_inputs: Its inputs (fake or real).
        **options: Options of `torch.compile`; none changes what is made.

    Returns:
        A function with the graph's signature that computes on the tensors given and, while a capture runs,
        records one execution of the compiled graph.
    """
    from torch._dynamo.backends.common import aot_autograd

    register_device_interface()
    _warn_of_asynchronous_tensor_parallelism()
    pair = _GraphPair(gm)
    compiler = aot_autograd(
        fw_compiler=functools.partial(pair.compile, "forward"),
        bw_compiler=functools.partial(pair.compile, "backward"),
        inference_compiler=functools.partial(pair.compile, "inference"),
        keep_inference_input_mutations=True,
    )
    with kept_whole(), flex_attention.taken_apart():
        compiled: Callable[..., Any] = compiler(gm, example_inputs)
    return compiled


def _warn_of_asynchronous_tensor_parallelism() -> None:
    """Inductor's passes do it, which make products of parts that wait for symmetric memory."""
    config = sys.modules.get("torch._inductor.config")
    if getattr(config, "_micro_pipeline_tp", False):
        warnings.warn(
            "Asynchronous tensor parallelism has no effect on the device neuron: it has no symmetric memory, "
            "and products and their collectives run one after the other.",
            RuntimeWarning,
            stacklevel=2,
        )


class _GraphPair:
    """The forward and backward graph of one Dynamo graph: they share names and module root."""

    def __init__(self, gm: fx.GraphModule) -> None:
        self._number = next(_numbers)
        self._root = frame_root()
        self._names = parameter_names(gm)
        self._callers = Callers()

    def compile(
        self, kind: str, gm: fx.GraphModule, example_inputs: Sequence[Any]
    ) -> CompiledGraph | PartedGraph:
        if not depends_on_values(gm.graph):
            return CompiledGraph(gm, self._description(kind, gm), self._callers)
        whole = self._description(kind, gm)
        return PartedGraph(
            gm,
            lambda part, place: CompiledGraph(
                part, self._description(f"{kind}_{place}", part), self._callers
            ),
            lambda: self._callers.calling(whole) if executables.current() else None,
        )

    def _description(self, kind: str, gm: fx.GraphModule) -> GraphDescription:
        names, kinds = self._parameters(gm)
        return GraphDescription(
            name=f"{self._root.class_name or 'graph'}_{self._number}_{kind}",
            backward=kind.startswith("backward"),
            root=self._root,
            parameter_names=names,
            parameter_kinds=kinds,
        )

    def _parameters(self, gm: fx.GraphModule) -> tuple[list[str], list[str]]:
        static = _static_inputs()
        names, kinds = [], []
        for node in gm.graph.nodes:
            if node.op == "placeholder":
                index = getattr(node.meta.get("desc"), "idx", -1) if node.name.startswith("primals") else -1
                index = _plain_index(node, index)
                known = 0 <= index < len(self._names)
                names.append(self._names[index] if known else node.name)
                kinds.append("weight" if index in static else "input")
        return names, kinds


def _plain_index(node: fx.Node, index: int) -> int:
    """Position among Dynamo's inputs: from the descriptor, or from the name in an inference graph."""
    if index >= 0:
        return index
    for prefix, first in (("primals_", 1), ("arg", 0)):
        digits = node.name.removeprefix(prefix).removesuffix("_1")
        if node.name.startswith(prefix) and digits.isdigit():
            return int(digits) - first
    return -1


def _static_inputs() -> set[int]:
    """Inputs that AOTAutograd knows to keep their address: parameters and buffers."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    return set(metadata.static_input_indices) if metadata is not None else set()
