"""A custom call whose Program is there already: an NKI kernel among the operations of a module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.records.program import Program

ATTRIBUTE = "ready_program"
"""Attribute of a `custom_call` that holds the `ReadyProgram` to run in its place."""


@dataclass(frozen=True, eq=False)
class ReadyProgram:
    """What a custom call runs.

    Two are equal where their keys are: passes compare attributes, and the compile cache prints them.

    Attributes:
        name: What the operation is called, e.g. "nki_kernel.softmax".
        key: Stands for the Program in every process.
        program: The Program, for one NeuronCore.
        operands: (row of `program.tensors`, number of the call's operand) of each tensor that it is given.
        results: (row of `program.tensors`, number of the call's result) of each that it gives.
    """

    name: str
    key: str
    program: Program
    operands: tuple[tuple[int, int], ...]
    results: tuple[tuple[int, int], ...]

    def given(self, operands: tuple[tuple[int, int], ...]) -> ReadyProgram:
        """The same with other operands."""
        return replace(self, operands=operands)

    def narrowed(self, results: Sequence[int]) -> ReadyProgram:
        """The same for a call that has only these of the results, in this order."""
        rows = {number: row for row, number in self.results}
        return replace(self, results=tuple((rows[number], place) for place, number in enumerate(results)))

    @property
    def _identity(self) -> tuple[object, ...]:
        return self.key, self.operands, self.results

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReadyProgram) and other._identity == self._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return f"ReadyProgram{self._identity}"


def ready_program_of(operation: Operation) -> ReadyProgram | None:
    """The Program that a custom call brings along; None for other operations."""
    found = operation.attributes.get(ATTRIBUTE)
    return found if isinstance(found, ReadyProgram) else None


def ready_programs(module: Module) -> dict[str, ReadyProgram]:
    """All ready Programs of a module, loop bodies and branches included, by key."""
    found = (ready_program_of(operation) for operation in _all_operations(module.operations))
    return {ready.key: ready for ready in found if ready is not None}


def _all_operations(operations: Iterable[Operation]) -> Iterator[Operation]:
    for operation in operations:
        yield operation
        for region in operation.regions:
            yield from _all_operations(region.operations)
