"""One elementwise engine does all the work while another that could do it idles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context, Mask, Select
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import rows_change
from neuron_profile.reports.quantities import percent
from neuron_tools.records.program import Engine, Program
from neuron_tools.simulator.instruction_costs import instruction_costs, shared_ports

BUSY, IDLE = 0.6, 0.2
# What an engine's elementwise work can move to: engines that have tensor_tensor, tensor_copy, activation.
_MOVES = {
    Engine.VECTOR: (Engine.GPSIMD, Engine.SCALAR),
    Engine.GPSIMD: (Engine.VECTOR,),
    Engine.SCALAR: (Engine.VECTOR,),
}


def find(context: Context) -> Iterator[Finding]:
    """A finding per engine that is busy for 60 % of the device time beside one below 20 %.

    The gain is that of the best split between the two: the other takes its own time for each instruction, and
    both may need the same port of SBUF or PSUM.
    """
    if not context.device_ns:
        return
    share = {engine: context.hotspot(_rows(engine)).busy_ns / context.device_ns for engine in _MOVES}
    for engine, others in _MOVES.items():
        idle = [other for other in others if share[other] <= IDLE]
        if share[engine] < BUSY or not idle:
            continue
        factors = {other: _best_factor(context, engine, other) for other in idle}
        other = min(idle, key=lambda candidate: factors[candidate])
        if factors[other] >= 1:
            continue
        hot = context.hotspot(_rows(engine))
        yield context.finding(
            "engine_imbalance",
            f"{engine.title} is busy {percent(share[engine])} of the device time, {other.title} "
            f"{percent(share[other])}",
            f"Give about {percent(1 - factors[other])} of the elementwise work to {other.title}.",
            rows_change(f"engine:{engine.title.lower()}={factors[other]:.2f}", _rows(engine), factors[other]),
            place=hot.place,
            evidence={"busy_share": round(share[engine], 3), "idle_share": round(share[other], 3)},
        )


def _best_factor(context: Context, engine: Engine, other: Engine) -> float:
    """Time of an engine's work when the other takes the best part of it, over its time now; 1 = no gain."""
    kept, moved, busy, port = 0.0, 0.0, 0.0, 0.0
    for use in context.programs:
        table = use.program.instructions
        rows = _rows(engine)(use.program)[0]
        elsewhere = table[rows].copy()
        elsewhere["engine"] = int(other)
        core = context.executions.core  # type: ignore[union-attr]  # there are programs
        kept += use.count * float(instruction_costs(table[rows], core)[0].sum())
        moved += use.count * float(instruction_costs(elsewhere, core)[0].sum())
        busy += use.count * float(instruction_costs(table[table["engine"] == int(other)], core)[0].sum())
        both = np.concatenate([table[rows], elsewhere])
        ports = shared_ports(both, core).reshape(2, -1)
        port += use.count * float(((ports[0] & ports[1]) != 0) @ instruction_costs(table[rows], core)[0])
    if not kept or not moved:
        return 1.0
    part = np.linspace(0, 1, 101)
    alone, shared = (1 - part) * kept, part * moved
    together = port / kept * (alone + shared)
    return float(np.maximum.reduce([alone, shared + busy, together]).min() / kept)


def _rows(engine: Engine) -> Select:
    def select(program: Program) -> tuple[Mask, Mask]:
        table = program.instructions
        return (table["engine"] == int(engine)) & (table["dma"] < 0), np.zeros(len(program.dmas), bool)

    return select
