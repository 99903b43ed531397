"""Instruction costs as data: one rule per engine, opcode and generation, with its source.

A rule gives, in cycles of the engine's own clock and for `n` elements per partition,
    stream   = n x cycles_per_element / speed of the performance mode
    interval = max(minimum_cycles, stream + interval_cycles)    until the next instruction may start
    latency  = stream + latency_cycles                          until the result is written
`neuron_tools.simulator.instruction_costs` evaluates the rules over instruction tables.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from neuron_tools.frozen import frozen
from neuron_tools.hardware.catalogue import data_text
from neuron_tools.hardware.errors import UnknownTargetError

OTHER = "*"
"""Opcode of the rule for instructions that have none of their own on an engine."""


@frozen
class CostRule:
    """Cost of one opcode on one engine; see the module's text for the formula.

    `mode` names how dtype and memory speed it up (rows of `performance_modes`); `sbuf_source_cycles` is
    added to interval and latency when the operand comes from SBUF. `is_estimate`: no published cost.
    """

    engine: str
    opcode: str
    cycles_per_element: float
    mode: str
    minimum_cycles: float
    interval_cycles: float
    latency_cycles: float
    sbuf_source_cycles: float
    is_estimate: bool
    source: str


def cost_rules(generation: int) -> Mapping[tuple[str, str], CostRule]:
    """Rules of a NeuronCore generation by (engine, opcode), e.g. ("VECTOR", "TENSOR_COPY").

    Where a generation has no published cost it takes the nearest older measured one's cycles, marked an
    estimate: v1 those of v2, v4 those of v3.

    Raises:
        UnknownTargetError: There is no such generation.
    """
    rules = _read_rules()
    own = rules.get(generation, {})
    older = {1: 2, 4: 3}.get(generation)
    if older is None and not own:
        raise UnknownTargetError(f"There are no instruction costs for NeuronCore generation {generation}.")
    inherited = rules[older] if older else {}
    return {**{key: _as_estimate(rule, older or 0) for key, rule in inherited.items()}, **own}


@lru_cache(maxsize=1)
def _read_rules() -> Mapping[int, Mapping[tuple[str, str], CostRule]]:
    rules: dict[int, dict[tuple[str, str], CostRule]] = {}
    for row in csv.DictReader(data_text("instruction_costs.csv").splitlines()):
        rule = CostRule(
            engine=row["engine"],
            opcode=row["opcode"],
            cycles_per_element=float(row["cycles_per_element"]),
            mode=row["mode"],
            minimum_cycles=float(row["minimum_cycles"]),
            interval_cycles=float(row["interval_cycles"]),
            latency_cycles=float(row["latency_cycles"]),
            sbuf_source_cycles=float(row["sbuf_source_cycles"]),
            is_estimate=row["estimate"] == "1",
            source=row["source"],
        )
        rules.setdefault(int(row["generation"]), {})[rule.engine, rule.opcode] = rule
    return rules


@lru_cache(maxsize=1)
def performance_modes() -> Mapping[tuple[int, str, str], float]:
    """Elements per cycle relative to the plain rate by (generation, mode, situation)."""
    return {
        (int(row["generation"]), row["mode"], row["situation"]): float(row["speed"])
        for row in csv.DictReader(data_text("performance_modes.csv").splitlines())
    }


def _as_estimate(rule: CostRule, published: int) -> CostRule:
    return replace(rule, is_estimate=True, source=f"cycles of NeuronCore-v{published}: {rule.source}")
