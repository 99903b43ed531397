"""The module of one core: half of what is split, and exchanges where a value is needed in another form.

What the cores exchange is the opcode EXCHANGE: the core's own part is in HBM, both meet, and the result is
there in the form that is needed. Attribute `before` is the axis of which the core has its half, `after` that
of which it gets its half. Where `is_partial`, each has a summand of the whole and gets both, core by core.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from neuron_tools.compiler.codegen.collective import COLLECTIVES
from neuron_tools.compiler.graph import captured, renamed_region
from neuron_tools.compiler.hlo import Module, Operation, TensorType, Value
from neuron_tools.compiler.opcodes import EXCHANGE
from neuron_tools.compiler.split.choice import Sharing
from neuron_tools.compiler.split.strategy import (
    CORES,
    WHOLE,
    Strategy,
    split_shape,
    strategies,
    widest_axis,
)
from neuron_tools.frozen import frozen


@frozen
class LocalModule:
    """What one core runs.

    Attributes:
        module: Its operations; the first core's takes part in collectives.
        parameters: Of each of its parameters, the one of the whole module that it is or is half of.
        depends_on_core: Whether the other core's module is another one.
    """

    module: Module
    parameters: tuple[int, ...]
    depends_on_core: bool


def local_module(module: Module, sharing: Sharing, core: int) -> LocalModule:
    """The module of core 0 or 1."""
    return _Localiser(module, sharing, core).run()


@dataclass
class _Localiser:
    whole: Module
    sharing: Sharing
    core: int
    values: list[Value] = field(init=False)
    operations: list[Operation] = field(default_factory=list)
    parameters: list[tuple[int, int]] = field(default_factory=list)  # (number, local value)
    depends_on_core: bool = False

    def __post_init__(self) -> None:
        self.values = list(self.whole.values)
        self._numbers = {value: number for number, value in enumerate(self.whole.parameters)}
        self._made_by: dict[int, Operation] = {}
        self._free: set[int] = set()
        self._local: dict[tuple[int, int], int] = {}
        self._axis: dict[int, int] = {}
        self._partial: dict[int, tuple[int, str]] = {}

    def run(self) -> LocalModule:
        for operation, strategy in zip(self.whole.operations, self.sharing.strategies):
            self._made_by.update(dict.fromkeys(operation.results, operation))
            if strategy is None:
                self._free.update(operation.results)
            elif operation.opcode in COLLECTIVES:
                self._collective(operation)
            else:
                self._emit(operation, strategy)
        results = tuple(self._result(value) for value in self.whole.results)
        used = {number for number, _ in self.parameters}
        for value in self.whole.parameters:
            if self._numbers[value] not in used:
                self._get(value, WHOLE)
        return LocalModule(self._module(results), tuple(n for n, _ in self.parameters), self.depends_on_core)

    def _module(self, results: tuple[int, ...]) -> Module:
        numbers = [number for number, _ in self.parameters]
        kinds, names = self.whole.parameter_kinds, self.whole.parameter_names
        places = {(number, self._type(value)): place for place, (number, value) in enumerate(self.parameters)}
        aliases = (
            (result, places.get((parameter, self._type(results[result]))))
            for result, parameter in self.whole.aliases
        )
        return replace(
            self.whole,
            values=tuple(self.values),
            parameters=tuple(value for _, value in self.parameters),
            operations=tuple(self.operations),
            results=results,
            parameter_kinds=tuple(kinds[n] if n < len(kinds) else "input" for n in numbers),
            parameter_names=tuple(names[n] if n < len(names) else f"input.{n}" for n in numbers),
            aliases=tuple((result, place) for result, place in aliases if place is not None),
        )

    # Values

    def _type(self, value: int) -> TensorType:
        return self.values[value].type

    def _new(self, value: int, axis: int) -> int:
        """A local value that has all of a value, or the half along an axis."""
        type_ = self.whole.values[value].type
        self.values.append(
            Value(
                len(self.values),
                TensorType(split_shape(type_.shape, axis), type_.dtype),
                self.whole.values[value].name,
            )
        )
        return len(self.values) - 1

    def _get(self, value: int, axis: int) -> int:
        """The local value that has a value in this form."""
        known = self._local.get((value, axis))
        if known is None:
            known = self._local[value, axis] = self._obtained(value, axis)
        return known

    def _obtained(self, value: int, axis: int) -> int:
        if value in self._numbers:
            found = self._new(value, axis)
            self.parameters.append((self._numbers[value], found))
            return found
        if value in self._free:
            return self._remade(value, axis)
        if value in self._partial:
            return self._combined(value, axis)
        before = self._axis[value]
        if before == WHOLE:
            return self._half(value, axis)
        operand, result = self._local[value, before], self._new(value, axis)
        self._add(EXCHANGE, (operand,), (result,), _exchange(before, axis), self._made_by[value])
        return result

    def _half(self, value: int, axis: int) -> int:
        """This core's half of what both have."""
        self.depends_on_core = True
        source, result = self._get(value, WHOLE), self._new(value, axis)
        shape, part = self._type(source).shape, self._type(result).shape
        start = tuple(part[axis] * self.core if place == axis else 0 for place in range(len(shape)))
        limit = tuple(begin + extent for begin, extent in zip(start, part))
        attributes = {"start_indices": start, "limit_indices": limit, "strides": (1,) * len(shape)}
        self._add("slice", (source,), (result,), attributes, self._made_by[value])
        return result

    def _combined(self, value: int, axis: int) -> int:
        """The sum (or what else) of both cores' partial results."""
        partial, opcode = self._partial.pop(value)
        self._axis[value] = axis
        parts = tuple(self._new(value, axis) for _ in range(CORES))
        maker = self._made_by[value]
        self._add(EXCHANGE, (partial,), parts, _exchange(WHOLE, axis, is_partial=True), maker)
        result = self._new(value, axis)
        self._add(opcode, parts, (result,), {}, maker)
        return result

    def _remade(self, value: int, axis: int) -> int:
        """What is made of constants only, made in this form."""
        operation = self._made_by[value]
        strategy = next((s for s in strategies(operation, self.whole) if s.results[0] == axis), None)
        if strategy is None:
            return self._half(value, axis)
        self._emit(operation, strategy)
        return self._local[value, axis]

    def _result(self, value: int) -> int:
        """A result of the module, of which each core stores what it has."""
        if value in self._numbers or value in self._free:
            return self._get(value, WHOLE)
        if value in self._partial:
            return self._get(value, widest_axis(self.whole.values[value].type.shape))
        return self._get(value, self._axis[value])

    # Operations

    def _emit(self, operation: Operation, strategy: Strategy) -> None:
        operands = tuple(map(self._get, operation.operands, strategy.operands))
        results = tuple(map(self._new, operation.results, strategy.results))
        attributes = self._attributes(operation, strategy)
        self._add(operation.opcode, operands, results, attributes, operation)
        if operation.opcode == "iota" and strategy.results[0] == attributes.get("iota_dimension", 0):
            results = (self._from_own_start(operation, results[0], strategy.results[0]),)
        for value, local, axis in zip(operation.results, results, strategy.results):
            if strategy.combine:
                self._partial[value] = local, strategy.combine
            else:
                self._axis[value] = axis
                self._local[value, axis] = local

    def _attributes(self, operation: Operation, strategy: Strategy) -> dict[str, Any]:
        """The operation's attributes, with extents of what one core has."""
        attributes = dict(operation.attributes)
        axis = strategy.operands[0] if strategy.operands else WHOLE
        for name in ("limit_indices", "slice_sizes"):
            if name in attributes and axis != WHOLE:
                extents = list(attributes[name])
                extents[axis] //= CORES
                attributes[name] = tuple(extents)
        return attributes

    def _from_own_start(self, operation: Operation, counted: int, axis: int) -> int:
        """An iota that goes on where the other core's half ends."""
        self.depends_on_core = True
        if not self.core:
            return counted
        offset, result = (self._new(operation.results[0], axis) for _ in range(2))
        start = self._type(counted).shape[axis] * self.core
        self._add("constant", (), (offset,), {"value": start}, operation)
        self._add("add", (counted, offset), (result,), {}, operation)
        return result

    def _collective(self, operation: Operation) -> None:
        """The first core takes part for both; the other waits for what it gets."""
        given = tuple(self._get(value, WHOLE) for value in operation.operands)
        self.depends_on_core = True
        if not self.core:
            brought, given = given, tuple(self._new(value, WHOLE) for value in operation.results)
            self._add(operation.opcode, brought, given, dict(operation.attributes), operation)
        for value, received in zip(operation.results, given):
            result = self._new(value, WHOLE)
            self._add(EXCHANGE, (received,), (result,), _exchange(WHOLE, WHOLE), operation)
            self._axis[value], self._local[value, WHOLE] = WHOLE, result

    def _add(
        self,
        opcode: str,
        operands: tuple[int, ...],
        results: tuple[int, ...],
        attributes: dict[str, Any],
        like: Operation,
    ) -> None:
        regions = like.regions if opcode == like.opcode else ()
        if regions:
            outside = {value: self._get(value, WHOLE) for value in set(captured(like))}
            regions = tuple(renamed_region(region, outside) for region in regions)
        self.operations.append(Operation(opcode, operands, results, attributes, like.framework, regions))


def _exchange(before: int, after: int, *, is_partial: bool = False) -> dict[str, Any]:
    """Attributes of an exchange; it stays where nobody reads it, as the other core waits for it."""
    return {"before": before, "after": after, "is_partial": is_partial, "has_side_effect": True}
