"""The compiler as libraries call it: a traced model's bytes in, an archive's bytes out."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_tools import hardware
from neuron_tools.compiler.flags import parse_flags
from neuron_tools.frontends import executables
from neuron_tools.frontends.torch_trace.graph_files import trace_of
from neuron_tools.neff.cache import cache_of_user


def compile_graph(data: bytes, options: str | Sequence[str] = (), target: str = "") -> bytes:
    """Compile a model that this process traced for several ranks.

    Args:
        data: What stands for it (`graph_files`).
        options: Of the compiler; those of `NEURON_CC_FLAGS` stand before them.
        target: Generation or instance, where the options name none; "": the chip that is there.

    Returns:
        The archive.

    Raises:
        TraceError: The bytes stand for no model of this process.
        UsageError: An option has a value that does not exist.
    """
    flags = parse_flags(options, with_environment=True)
    chip = flags.target or target or present_chip()
    core = hardware.get(chip, lnc=flags.lnc or hardware.chosen_lnc(chip))
    with executables.without_provider():
        neff = trace_of(data).compiled(core, flags.options, cache_of_user(folder=flags.cache_directory))
    return neff.to_bytes()


def present_chip() -> str:
    """The generation of the simulated device."""
    import torch

    return str(torch.neuron.get_device_properties().name)
