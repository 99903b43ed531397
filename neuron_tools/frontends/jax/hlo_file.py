"""Serialized HLO modules, as frameworks hand them to a compiler command."""

from __future__ import annotations

from neuron_tools.compiler.hlo import Module
from neuron_tools.errors import NeuronToolsError


class HloFileError(NeuronToolsError):
    """Bytes are no HLO module, or this environment cannot read them."""


def read_hlo(data: bytes) -> Module:
    """The module of a serialized `HloModuleProto`.

    Args:
        data: Its bytes.

    Raises:
        HloFileError: They are none, or jaxlib is absent, whose reader is used.
        StableHloError: A value has no static shape.
    """
    bytecode = module_bytecode(data)
    from neuron_tools.frontends.jax.lowering import lower

    return lower(bytecode)


def module_bytecode(data: bytes) -> bytes:
    """The same module in StableHLO, with locations, in MLIR's bytecode or text.

    Args:
        data: A serialized `HloModuleProto`.

    Raises:
        HloFileError: It is none, or jaxlib is absent, whose reader is used.
    """
    try:
        from jax._src.lib import _jax  # type: ignore[attr-defined]  # jaxlib's only way to read HLO
    except ImportError as error:
        raise HloFileError('HLO modules are read with jaxlib: pip install "neuron-tools[jax]".') from error
    try:
        return bytes(_jax.mlir.hlo_to_stablehlo(data))
    except (RuntimeError, ValueError) as error:
        raise HloFileError(f"This is no HLO module: {str(error).splitlines()[0]}") from error
