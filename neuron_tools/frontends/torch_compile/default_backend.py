"""Lets `torch.compile()` use our back end for graphs on `neuron`, and PyTorch's own for others.

Also where inductor is named, as in many a training script: it makes no code for this device.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from neuron_tools.frontends.torch_compile import flex_attention
from neuron_tools.frontends.torch_compile.admission import admit_pointwise_scans
from neuron_tools.late_import import after_import

_REGISTRY = "torch._dynamo.backends.registry"


def install() -> Callable[[], None]:
    """Make it the default back end, now or at the first `torch.compile`; returns a function that undoes it.

    Dynamo is not imported for it: that would cost every program a second.
    """
    original = torch.compile
    inductor: Any = torch._TorchCompileInductorWrapper
    inductor_call = inductor.__call__

    @functools.wraps(original)
    def compile(*args: Any, **kwargs: Any) -> Any:
        _set_default()
        return original(*args, **kwargs)

    @functools.wraps(inductor_call)
    def call(self: Any, gm: Any, example_inputs: Sequence[Any], **options: Any) -> Any:
        if is_on_device(gm, example_inputs):
            return _ours(gm, example_inputs)
        return inductor_call(self, gm, example_inputs, **options)

    if _REGISTRY in sys.modules:
        _set_default()
    torch.compile, inductor.__call__ = compile, call
    flex_attention.allow()
    admit_pointwise_scans()
    _explain_aot_inductor()

    def uninstall() -> None:
        torch.compile, inductor.__call__ = original, inductor_call
        if _REGISTRY in sys.modules and torch.compiler.get_default_backend() is choose_backend:
            torch.compiler.set_default_backend(None)

    return uninstall


def _set_default() -> None:
    """Only where the user has not chosen another default. Dynamo shall not look into this package."""
    from torch._dynamo import trace_rules

    from neuron_tools.frontends.nki import dynamo

    trace_rules.add("neuron_tools")
    dynamo.install()
    if torch.compiler.get_default_backend() == "inductor":
        torch.compiler.set_default_backend(choose_backend)


def choose_backend(
    gm: Any, example_inputs: Sequence[Any], mode: Any = None, options: Any = None
) -> Callable[..., Any]:
    """Compile with ours where a tensor of the graph is on the device, else with inductor."""
    if is_on_device(gm, example_inputs):
        return _ours(gm, example_inputs)
    inductor: Any = torch._TorchCompileInductorWrapper
    compiled: Callable[..., Any] = inductor(mode, options, None)(gm, example_inputs)
    return compiled


def is_on_device(gm: Any, example_inputs: Sequence[Any]) -> bool:
    """Whether a graph takes tensors on the device, or makes some there.

    Args:
        gm: A Dynamo graph.
        example_inputs: Its inputs, fake or real.
    """
    return any(
        isinstance(value, torch.Tensor) and value.device.type == "neuron"
        for value in (*example_inputs, *_made_values(gm))
    )


def _made_values(gm: Any) -> Iterator[Any]:
    for node in gm.graph.nodes:
        yield from torch.utils._pytree.tree_leaves(node.meta.get("example_value"))


def _ours(gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    from neuron_tools.frontends.torch_compile.backend import neuron_backend

    return neuron_backend(gm, example_inputs)


def _explain_aot_inductor() -> None:
    """Refuse AOTInductor for this device in a sentence; it ended with a KeyError."""

    def explain() -> None:
        from torch._inductor import compile_fx

        original = compile_fx.compile_fx_aot

        @functools.wraps(original)
        def compile_fx_aot(gm: Any, example_inputs: Any, *args: Any, **options: Any) -> Any:
            if is_on_device(gm, example_inputs):
                raise NotImplementedError(
                    "AOTInductor makes no code for the device neuron: compile with "
                    'torch.compile(backend="neuron"), or make an artifact with torch_neuronx.trace.'
                )
            return original(gm, example_inputs, *args, **options)

        compile_fx.compile_fx_aot = compile_fx_aot

    after_import("torch._inductor.compile_fx", explain)


__all__ = ["choose_backend", "install", "is_on_device"]
