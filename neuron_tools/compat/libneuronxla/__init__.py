"""`libneuronxla` where AWS's package is absent: the compiler, and what scripts call of the plugin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from neuron_tools.compat.absent import names_of
from neuron_tools.frontends.torch_trace.compile_graph import compile_graph

__all__ = ["neuron_xla_compile", "neuron_xla_wlo_compile", "register_hlo_snapshot_callback"]


def register_hlo_snapshot_callback(callback: Callable[[str, int, int], str]) -> None:
    """Accepted for compatibility: no snapshot is written; `neuron-profile capture` records every graph."""


def neuron_xla_compile(
    module_bytes: bytes, compiler_flags: str | Sequence[str] = (), platform_target: str = "", **others: Any
) -> bytes:
    """Compile a traced model.

    Args:
        module_bytes: What stands for it in this process.
        compiler_flags: Options of the compiler.
        platform_target: The chip, where the options name none.
        **others: Accepted for compatibility.

    Returns:
        The archive.

    Raises:
        TraceError: The bytes stand for no model of this process.
        UsageError: An option has a value that does not exist.
    """
    return compile_graph(module_bytes, compiler_flags, platform_target)


def neuron_xla_wlo_compile(
    module_bytes: bytes, compiler_flags: str | Sequence[str] = (), platform_target: str = "", **others: Any
) -> tuple[bytes, bytes]:
    """Compile the model that decides how weights lie in memory: here they lie as PyTorch has them.

    Args:
        module_bytes: What stands for it in this process.
        compiler_flags: Options of the compiler.
        platform_target: The chip, where the options name none.
        **others: Accepted for compatibility.

    Returns:
        The archive, and nothing that would arrange weights.

    Raises:
        TraceError: The bytes stand for no model of this process.
        UsageError: An option has a value that does not exist.
    """
    return compile_graph(module_bytes, compiler_flags, platform_target), b""


__getattr__ = names_of(__name__, "AWS's compiler works on files of its own there; use torch_neuronx.trace.")
