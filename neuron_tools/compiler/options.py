"""What may be chosen about a compilation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompilerOptions:
    """Options of `compile_module`.

    Attributes:
        fuse: Form groups of several operations; off, every operation is a loop of its own.
        while_trip_count: Iterations assumed for a loop whose count is not known.
    """

    fuse: bool = True
    while_trip_count: int = 1
