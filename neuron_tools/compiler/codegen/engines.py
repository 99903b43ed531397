"""Choice of engine for instructions that several engines can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import product

from neuron_tools.compiler.codegen.selection import Micro
from neuron_tools.compiler.passes.fusion import Shape
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.simulator.instruction_costs import instruction_costs
from neuron_tools.simulator.program import INSTRUCTION_DTYPE, DType, Engine, Memory, Opcode, empty_table

SEARCHED_CHOICES = 600
"""Assignments tried one by one when the quick choice does not keep within the budget."""
_SCALAR_STATISTICS_PASSES = 2
"""The Scalar engine has no BN_STATS: it takes the sum in one ACTIVATE and the sum of squares in another."""


@lru_cache(maxsize=4096)
def instruction_ns(
    core: NeuronCore,
    engine: Engine,
    opcode: Opcode,
    elements: int,
    dtype: DType = DType.F32,
    source: Memory = Memory.SBUF,
) -> float:
    """Issue interval of an instruction that writes SBUF, as the simulator will count it."""
    if engine is Engine.SCALAR and opcode is Opcode.BN_STATS:
        return _SCALAR_STATISTICS_PASSES * instruction_ns(core, engine, Opcode.ACTIVATE, elements, dtype)
    row = empty_table(INSTRUCTION_DTYPE, 1)
    row["engine"], row["opcode"], row["elements"] = engine, opcode, elements
    row["partitions"] = core.sbuf_partitions
    row["input_dtype"] = row["output_dtype"] = dtype
    row["source_memory"], row["destination_memory"] = source, Memory.SBUF
    interval_ps, _ = instruction_costs(row, core)
    return float(interval_ps[0]) / 1e3


def assign_engines(
    micros: Sequence[Micro], core: NeuronCore, elements: int, budget_ns: float,
    dtype_of: Callable[[Micro], DType] = lambda micro: DType.F32,
) -> tuple[Engine, ...]:  # fmt: skip
    """Engine of each instruction of a tile body.

    The first engine that still has room within `budget_ns` (the time in which the tile's bytes move)
    takes an instruction; when none has, the one that would be done first. If the busiest engine then
    exceeds the budget and there are few choices, all of them are compared.
    """
    costs = [_costs(micro, core, elements, dtype_of(micro)) for micro in micros]
    chosen = _greedy(costs, budget_ns)
    if _busiest(costs, chosen) <= budget_ns:
        return chosen
    choices = 1
    for cost in costs:
        choices *= len(cost)
    if choices > SEARCHED_CHOICES:
        return chosen
    return min(product(*costs), key=lambda engines: _busiest(costs, engines))


def _costs(micro: Micro, core: NeuronCore, elements: int, dtype: DType) -> Mapping[Engine, float]:
    """Time of an instruction on each engine it may run on; tiny ones stay on the first."""
    if micro.shape is Shape.ROW:
        return {micro.engines[0]: instruction_ns(core, micro.engines[0], micro.opcode, 1, dtype)}
    return {engine: instruction_ns(core, engine, micro.opcode, elements, dtype) for engine in micro.engines}


def _greedy(costs: Sequence[Mapping[Engine, float]], budget_ns: float) -> tuple[Engine, ...]:
    load = dict.fromkeys(Engine, 0.0)
    chosen: list[Engine] = []
    for cost in costs:
        roomy = [engine for engine in cost if load[engine] + cost[engine] <= budget_ns]
        engine = roomy[0] if roomy else min(cost, key=lambda e: load[e] + cost[e])
        load[engine] += cost[engine]
        chosen.append(engine)
    return tuple(chosen)


def _busiest(costs: Sequence[Mapping[Engine, float]], engines: Sequence[Engine]) -> float:
    load = dict.fromkeys(Engine, 0.0)
    for cost, engine in zip(costs, engines):
        load[engine] += cost[engine]
    return max(load.values())
