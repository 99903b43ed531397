"""The Dynamo back end: AOTAutograd makes forward and backward graphs, each becomes a `CompiledGraph`.

Found by name through the entry point group `torch_dynamo_backends`.
"""

from __future__ import annotations

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
from neuron_tools.frontends.torch_compile.known_masks import fold_known_masks
from neuron_tools.frontends.torch_compile.moved_graph import MovedGraph, bring_to_device, is_of_host
from neuron_tools.frontends.torch_compile.naming import frame_root, model_name, parameter_names
from neuron_tools.frontends.torch_compile.parted_graph import PartedGraph, depends_on_values
from neuron_tools.frontends.torch_compile.partition import cut_in_two
from neuron_tools.frontends.torch_compile.whole_operators import kept_whole

_numbers = itertools.count()
Compile = Callable[["GraphPair", str, fx.GraphModule], Any]
"""Makes what is called for a graph of a pair, given whether it is "forward", "backward" or "inference"."""


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
    register_device_interface()
    _warn_of_asynchronous_tensor_parallelism()
    return compile_pair(gm, example_inputs, _compiled)


def compile_pair(gm: fx.GraphModule, example_inputs: Sequence[Any], compile: Compile) -> Callable[..., Any]:
    """Let AOTAutograd make the forward and the backward graph of a Dynamo graph.

    Args:
        gm: Dynamo's graph.
        example_inputs: Its inputs (fake or real).
        compile: Makes what is called for each of the two.

    Returns:
        A function with the graph's signature.
    """
    from torch._dynamo.backends.common import aot_autograd

    pair = GraphPair(gm)

    def compiler(kind: str) -> Callable[..., Any]:
        return lambda graph, _: compile(pair, kind, graph)

    def infer(graph: fx.GraphModule, _: Any) -> Any:
        fold_known_masks(graph)
        return compile(pair, "inference", graph)

    differentiated = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=infer,
        keep_inference_input_mutations=True,
        partition_fn=cut_in_two,
    )
    with kept_whole(), flex_attention.taken_apart():
        compiled: Callable[..., Any] = differentiated(gm, example_inputs)
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


class GraphPair:
    """The forward and backward graph of one Dynamo graph: they share names and module root.

    Attributes:
        callers: The modules that ran the forward graph.
    """

    def __init__(self, gm: fx.GraphModule) -> None:
        self.callers = Callers()
        self._number = next(_numbers)
        self._root = frame_root()
        self._model = model_name() or self._root.class_name or "graph"
        self._names = parameter_names(gm)

    def describe(self, kind: str, gm: fx.GraphModule) -> GraphDescription:
        """What is known of one of the two.

        Args:
            kind: "forward", "backward" or "inference", and what its name says behind that.
            gm: It.
        """
        names, kinds = self._parameters(gm)
        return GraphDescription(
            name=f"{self._model}_{self._number}_{kind}",
            model=self._model,
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


def _compiled(pair: GraphPair, kind: str, gm: fx.GraphModule) -> CompiledGraph | PartedGraph | MovedGraph:
    if kind != "inference" or not is_of_host(gm):
        return _compiled_where_it_is(pair, kind, gm)
    bring_to_device(gm)
    return MovedGraph(gm, _compiled_where_it_is(pair, kind, gm))


def _compiled_where_it_is(pair: GraphPair, kind: str, gm: fx.GraphModule) -> CompiledGraph | PartedGraph:
    whole = pair.describe(kind, gm)
    if not depends_on_values(gm.graph):
        return CompiledGraph(gm, whole, pair.callers)
    return PartedGraph(
        gm,
        lambda part, place: CompiledGraph(part, pair.describe(f"{kind}_{place}", part), pair.callers),
        lambda: pair.callers.calling(whole) if executables.current() else None,
    )


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
