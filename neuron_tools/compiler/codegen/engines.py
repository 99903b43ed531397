"""Choice of engine for instructions that several engines can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from neuron_tools.compiler.codegen.selection import Micro
from neuron_tools.compiler.passes.fusion import Shape
from neuron_tools.hardware.instruction_costs import OTHER, CostRule, cost_rules
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.simulator.program import Engine, Opcode


def engine_clock_ghz(core: NeuronCore, engine: Engine) -> float:
    """Clock of an engine."""
    return float(getattr(core, f"{engine.name.lower()}_clock_ghz"))


@lru_cache(maxsize=16)
def _rules(generation: int) -> Mapping[tuple[str, str], CostRule]:
    return cost_rules(generation)


def instruction_ns(core: NeuronCore, engine: Engine, opcode: Opcode, elements: int) -> float:
    """Issue interval of an instruction at the plain rate (no performance mode), for comparing engines."""
    rules = _rules(core.generation)
    rule = rules.get((engine.name, opcode.name)) or rules.get((engine.name, OTHER))
    if rule is None:
        return 0.0
    cycles = max(rule.minimum_cycles, elements * rule.cycles_per_element + rule.interval_cycles)
    return cycles / engine_clock_ghz(core, engine)


def assign_engines(
    micros: Sequence[Micro], core: NeuronCore, elements: int, budget_ns: float
) -> tuple[Engine, ...]:
    """Engine of each instruction of a tile body.

    The first engine that still has room within `budget_ns` (the time in which the tile's bytes move)
    takes an instruction; when none has, the one that would be done first.
    """
    load = dict.fromkeys(Engine, 0.0)
    chosen: list[Engine] = []
    for micro in micros:
        size = elements if micro.shape is Shape.FULL else 1
        costs = {engine: instruction_ns(core, engine, micro.opcode, size) for engine in micro.engines}
        if len(costs) == 1 or micro.shape is Shape.ROW:
            engine = micro.engines[0]
        else:
            roomy = [engine for engine in micro.engines if load[engine] + costs[engine] <= budget_ns]
            engine = roomy[0] if roomy else min(micro.engines, key=lambda e: load[e] + costs[e])
        load[engine] += costs[engine]
        chosen.append(engine)
    return tuple(chosen)
