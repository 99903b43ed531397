"""Chooses how two cores share a module: for each operation the strategy that makes the whole cheapest.

Costs flow down the module (the cheapest way to have each value split along each axis), decisions flow back
up (what those that were decided need of their operands). Exact for a chain; where a value has several users
its cost is shared out among them. A sum that alone is cheapest along the columns may then ask for columns of
what others make by rows: all is chosen again with reductions of rows alone, and the cheaper way is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from neuron_tools.compiler.graph import operands_of, producers
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.split.costs import Costs
from neuron_tools.compiler.split.strategy import (
    CORES,
    WHOLE,
    Strategy,
    is_free,
    strategies,
    widest_axis,
)


@dataclass(frozen=True)
class Sharing:
    """How a module is shared.

    Attributes:
        strategies: Of each operation, in order; None where each core makes the result as it needs it.
        cost_ns: Estimate of the time that one core needs, with what the cores tell each other.
        alone_ns: The same where both cores do all.
    """

    strategies: tuple[Strategy | None, ...]
    cost_ns: float
    alone_ns: float


def choose(module: Module, costs: Costs) -> Sharing:
    """The cheapest sharing of a module."""
    ways = (_Chooser(module, costs, by_rows) for by_rows in (False, True))
    return min((way.run() for way in ways), key=lambda sharing: sharing.cost_ns)


@dataclass(slots=True)
class _Options:
    """Strategies of an operation and what each costs, with all that comes before it."""

    strategies: Sequence[Strategy]
    cost_ns: list[float] = field(default_factory=list)


class _Chooser:
    def __init__(self, module: Module, costs: Costs, by_rows: bool) -> None:
        self._module = module
        self._costs = costs
        self._by_rows = by_rows
        self._uses = _use_counts(module)
        self._free: set[int] = set()
        self._cost: dict[int, Mapping[int, float]] = {}  # by value and axis
        self._given = set(module.parameters)
        self._made_by = producers(module)

    def run(self) -> Sharing:
        """See `choose`."""
        options = [self._options(operation) for operation in self._module.operations]
        chosen: list[Strategy | None] = [None] * len(options)
        wanted: dict[int, set[int]] = {}
        for index in range(len(options) - 1, -1, -1):
            found, operation = options[index], self._module.operations[index]
            if found is not None:
                chosen[index] = self._decide(operation, found, wanted)
        return Sharing(tuple(chosen), self._total(chosen, wanted), self._total_alone())

    def _options(self, operation: Operation) -> _Options | None:
        if is_free(operation, self._free):
            self._free.update(operation.results)
            return None
        found = _Options(self._strategies(operation))
        for strategy in found.strategies:
            arrives = sum(map(self._arrival_ns, operation.operands, strategy.operands))
            found.cost_ns.append(arrives + self._work_ns(operation, strategy))
        for number, result in enumerate(operation.results):
            self._cost[result] = self._result_costs(found, number, result)
        return found

    def _strategies(self, operation: Operation) -> Sequence[Strategy]:
        every = strategies(operation, self._module)
        if operation.opcode != "reduce" or not self._by_rows:
            return every
        rows = widest_axis(self._module.shape_of(operation.operands[0]))
        return [strategy for strategy in every if strategy.operands[0] == rows] or every

    def _work_ns(self, operation: Operation, strategy: Strategy) -> float:
        """Time of the core that has more to do.

        Where a mask made by counting along the split axis chooses, one core's rows need what the other's do
        not: the later queries see all keys. The whole of such a choice is counted.
        """
        is_choice = operation.opcode == "select" and strategy.is_shared
        if is_choice and self._counts_along(operation.operands[0], strategy.operands[0]):
            return CORES * self._costs.work_ns(operation, replace(strategy, is_shared=False))
        return self._costs.work_ns(operation, strategy)

    def _counts_along(self, value: int, axis: int) -> bool:
        """Whether a value is made of an iota along an axis."""
        maker = self._made_by.get(value)
        if maker is None or value not in self._free or axis == WHOLE:
            return False
        if maker.opcode == "iota":
            return int(maker.attributes.get("iota_dimension", 0)) == axis
        found = next((s for s in strategies(maker, self._module) if s.results[0] == axis), None)
        return found is not None and any(map(self._counts_along, maker.operands, found.operands))

    def _result_costs(self, found: _Options, number: int, result: int) -> Mapping[int, float]:
        table: dict[int, float] = {}
        for strategy, cost in zip(found.strategies, found.cost_ns):
            axis = strategy.results[number]
            if strategy.combine:
                axis = widest_axis(self._module.shape_of(result))
                cost += self._costs.combine_ns(result, axis)
            table[axis] = min(cost, table.get(axis, float("inf")))
        return table

    def _arrival_ns(self, value: int, axis: int) -> float:
        """Cost of having a value split along an axis, this reader's share of it."""
        if value in self._given or value in self._free:
            return 0.0
        shares = max(self._uses.get(value, 1), 1)
        return min(
            cost / shares + self._change_ns(value, before, axis) for before, cost in self._cost[value].items()
        )

    def _change_ns(self, value: int, before: int, after: int) -> float:
        if before in (after, WHOLE):
            return 0.0  # of what both cores have, each reads its part
        return self._costs.exchange_ns(value, before, after)

    def _decide(self, operation: Operation, found: _Options, wanted: dict[int, set[int]]) -> Strategy:
        costs = [
            cost + self._given_on_ns(operation, strategy, wanted)
            for strategy, cost in zip(found.strategies, found.cost_ns)
        ]
        strategy = found.strategies[costs.index(min(costs))]
        for value, axis in zip(operation.operands, strategy.operands):
            wanted.setdefault(value, set()).add(axis)
        for value in set(operands_of(operation)) - set(operation.operands):
            wanted.setdefault(value, set()).add(WHOLE)
        return strategy

    def _given_on_ns(self, operation: Operation, strategy: Strategy, wanted: Mapping[int, set[int]]) -> float:
        """What it costs to give the results to those that were decided, or to store them."""
        total = 0.0
        for result, axis in zip(operation.results, strategy.results):
            needed = wanted.get(result, set())
            if strategy.combine:
                places = needed or {widest_axis(self._module.shape_of(result))}
                total += sum(self._costs.combine_ns(result, place) for place in places)
            else:
                total += sum(self._change_ns(result, axis, place) for place in needed)
            if result in self._module.results:
                total += self._costs.store_ns(result, axis)
        return total

    def _total(self, chosen: Sequence[Strategy | None], wanted: Mapping[int, set[int]]) -> float:
        return sum(
            self._costs.work_ns(operation, strategy) + self._given_on_ns(operation, strategy, wanted)
            for operation, strategy in zip(self._module.operations, chosen)
            if strategy is not None
        )

    def _total_alone(self) -> float:
        return sum(
            self._costs.work_ns(operation, strategies(operation, self._module)[-1])
            for operation in self._module.operations
            if not set(operation.results) & self._free
        )


def _use_counts(module: Module) -> dict[int, int]:
    counts: dict[int, int] = {}
    for operation in module.operations:
        for value in set(operands_of(operation)):
            counts[value] = counts.get(value, 0) + 1
    for value in module.results:
        counts[value] = counts.get(value, 0) + 1
    return counts
