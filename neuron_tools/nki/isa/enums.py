"""Enumerations of `nki.isa`."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.records.program import Engine

Member = TypeVar("Member", bound=Enum)


def as_member(kind: type[Member], value: Any) -> Member:
    """A member of an enumeration given as itself, by its name or by its number.

    Raises:
        NkiValidationError: There is no such member.
    """
    if isinstance(value, kind):
        return value
    try:
        return kind[value] if isinstance(value, str) else kind(value)
    except (KeyError, ValueError):
        names = ", ".join(f"{member.name} ({member.value})" for member in kind)
        raise NkiValidationError(
            f"{kind.__name__} has no {value!r}; it has {names}", tracing.where()
        ) from None


class _Option(Enum):
    """What an argument of an instruction chooses among."""

    __hash__ = object.__hash__  # Enum hashes names in Python; these are parts of keys on hot paths


class engine(_Option):
    """Engines of a NeuronCore, as `engine=` arguments."""

    tensor = 1
    vector = 2
    scalar = 3
    gpsimd = 4
    dma = 5
    sync = 6
    unknown = 0

    @property
    def chosen(self) -> Engine | None:
        """The engine as Programs name it; None where the choice is left open."""
        return _ENGINES.get(self)


_ENGINES = {
    engine.tensor: Engine.TENSOR,
    engine.vector: Engine.VECTOR,
    engine.scalar: Engine.SCALAR,
    engine.gpsimd: Engine.GPSIMD,
    engine.sync: Engine.SYNC,
}


class reduce_cmd(_Option):
    """What an instruction does with the engine's accumulation registers."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(_Option):
    """Who makes a DMA's descriptors: the runtime beforehand, software, or hardware."""

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(_Option):
    """What an indirect access does with an index out of bounds."""

    error = 0
    skip = 1


class matmul_perf_mode(_Option):
    """Performance mode of a matmul: `double_row` takes two fp8 rows at a time."""

    none = 0
    double_row = 1
    double_column = 2
    double_pixel = 3
    double_row_gen3 = 1


class nc_version(_Option):
    """Generation of the NeuronCore: Trn1 and Inf2, Trn2, Trn3."""

    gen2 = 2
    gen3 = 3
    gen4 = 4

    def __lt__(self, other: nc_version) -> bool:
        return self.value < other.value

    def __le__(self, other: nc_version) -> bool:
        return self.value <= other.value

    def __gt__(self, other: nc_version) -> bool:
        return self.value > other.value

    def __ge__(self, other: nc_version) -> bool:
        return self.value >= other.value


class dma_engine(_Option):
    """Which DMA moves data between the cores of a logical NeuronCore."""

    dma = 0
    gpsimd_dma = 1


tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
unknown_engine = engine.unknown
