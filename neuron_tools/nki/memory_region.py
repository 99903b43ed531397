"""The memories a tensor can be declared in."""

from __future__ import annotations

from enum import Enum

from neuron_tools.records.program import Memory


class MemoryRegion(Enum):
    """Where `nl.ndarray(..., buffer=)` puts a tensor. `hbm` is another name of `private_hbm`."""

    __hash__ = object.__hash__  # Enum hashes names in Python; these are parts of keys on hot paths

    sbuf = "sbuf"
    psum = "psum"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"
    hbm = "private_hbm"

    @property
    def memory(self) -> Memory:
        """The memory as Programs name it."""
        return _MEMORY[self]

    @property
    def is_on_chip(self) -> bool:
        """Whether it is SBUF or PSUM."""
        return self in (MemoryRegion.sbuf, MemoryRegion.psum)

    def __str__(self) -> str:
        return self.value

    def __repr__(self) -> str:
        return f"nl.{self.value}"


_MEMORY = {
    MemoryRegion.sbuf: Memory.SBUF,
    MemoryRegion.psum: Memory.PSUM,
    MemoryRegion.private_hbm: Memory.HBM,
    MemoryRegion.shared_hbm: Memory.HBM,
}


def is_sbuf(buffer: object) -> bool:
    """Whether a `buffer=` value is SBUF."""
    return buffer is MemoryRegion.sbuf


def is_psum(buffer: object) -> bool:
    """Whether a `buffer=` value is PSUM."""
    return buffer is MemoryRegion.psum


def is_hbm(buffer: object) -> bool:
    """Whether a `buffer=` value is HBM, private or shared."""
    return buffer in (MemoryRegion.private_hbm, MemoryRegion.shared_hbm)


def is_on_chip(buffer: object) -> bool:
    """Whether a `buffer=` value is SBUF or PSUM."""
    return is_sbuf(buffer) or is_psum(buffer)
