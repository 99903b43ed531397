"""Editing of `hlo.Module`s: new values, replaced values, who uses what. Shared by all passes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from neuron_tools.compiler.hlo import Module, Operation, Region, TensorType, Value


def captured(operation: Operation) -> Iterator[int]:
    """Values that the operation's regions use from outside themselves."""
    for region in operation.regions:
        defined = set(region.parameters)
        for inner in region.operations:
            yield from (value for value in operands_of(inner) if value not in defined)
            defined.update(inner.results)
        yield from (value for value in region.results if value not in defined)


def operands_of(operation: Operation) -> Iterator[int]:
    """Operands and captured values: all that must exist before the operation can run."""
    yield from operation.operands
    if operation.regions:
        yield from captured(operation)


def producers(module: Module) -> dict[int, Operation]:
    """The operation that makes each value; parameters have none."""
    return {result: operation for operation in module.operations for result in operation.results}


class Finder:
    """What looks for a pattern: it knows what makes each value of a module, and who uses it.

    Args:
        module: Where it looks; it stays as it is.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self._made_by = producers(module)
        self._users = users(module)


def users(module: Module) -> dict[int, list[Operation]]:
    """The operations that use each value, in order."""
    table: dict[int, list[Operation]] = {}
    for operation in module.operations:
        for value in dict.fromkeys(operands_of(operation)):
            table.setdefault(value, []).append(operation)
    return table


@dataclass
class Rewriter:
    """Collects the operations of a rewritten module in order; `alias` redirects replaced values."""

    module: Module
    values: list[Value] = field(init=False)
    operations: list[Operation] = field(default_factory=list)
    _aliases: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values = list(self.module.values)

    def type_of(self, value: int) -> TensorType:
        """Type of a value, old or new."""
        return self.values[value].type

    def new_value(self, type_: TensorType) -> int:
        """Define a value that the original module does not have."""
        self.values.append(Value(len(self.values), type_))
        return len(self.values) - 1

    def alias(self, old: int, new: int) -> None:
        """Let every later use of `old` mean `new`."""
        self._aliases[old] = self.resolve(new)

    def resolve(self, value: int) -> int:
        """What a value now stands for."""
        return self._aliases.get(value, value)

    def renamed(self, operation: Operation) -> Operation:
        """The operation with its operands (and those of its regions) redirected."""
        if not self._aliases:
            return operation
        operands = tuple(self._aliases.get(value, value) for value in operation.operands)
        if operation.regions:
            regions = tuple(renamed_region(region, self._aliases) for region in operation.regions)
            return replace(operation, operands=operands, regions=regions)
        return operation if operands == operation.operands else replace(operation, operands=operands)

    def add(
        self, opcode: str, operands: Sequence[int], type_: TensorType, like: Operation, **attributes: Any
    ) -> int:
        """Append a new single-result operation that inherits `like`'s framework rows."""
        result = self.new_value(type_)
        self.operations.append(Operation(opcode, tuple(operands), (result,), attributes, like.framework))
        return result

    def finish(self) -> Module:
        """The rewritten module."""
        results = tuple(self.resolve(value) for value in self.module.results)
        return replace(
            self.module, values=tuple(self.values), operations=tuple(self.operations), results=results
        )


class OrderedPass(ABC):
    """A pass that goes over the operations once, in order; what it makes of each is the subclass's."""

    def __init__(self, module: Module) -> None:
        self._rewriter = Rewriter(module)
        self._made_by: dict[int, Operation] = {}

    def run(self) -> Module:
        """Rewrite all operations in order."""
        for original in self._rewriter.module.operations:
            kept = self._rewritten(self._rewriter.renamed(original))
            if kept is not None:
                self._keep(kept)
        return self._rewriter.finish()

    def _keep(self, operation: Operation) -> None:
        self._rewriter.operations.append(operation)
        self._made_by.update(dict.fromkeys(operation.results, operation))

    @abstractmethod
    def _rewritten(self, operation: Operation) -> Operation | None:
        """What stands in an operation's place; None where others do, or its results mean other values now."""


def renamed_region(region: Region, aliases: Mapping[int, int]) -> Region:
    """A region whose uses of outer values are redirected."""
    operations = tuple(
        replace(
            inner,
            operands=tuple(aliases.get(value, value) for value in inner.operands),
            regions=tuple(renamed_region(nested, aliases) for nested in inner.regions),
        )
        for inner in region.operations
    )
    return Region(region.parameters, operations, tuple(aliases.get(v, v) for v in region.results))
