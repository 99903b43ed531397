"""One elementwise engine does all the work while another that could do it idles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context, Mask, Select
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import rows_change
from neuron_profile.reports.quantities import percent
from neuron_tools.records.program import Engine, Program

BUSY, IDLE = 0.6, 0.2
# What an engine's elementwise work can move to: engines that have tensor_tensor, tensor_copy, activation.
_MOVES = {
    Engine.VECTOR: (Engine.GPSIMD, Engine.SCALAR),
    Engine.GPSIMD: (Engine.VECTOR,),
    Engine.SCALAR: (Engine.VECTOR,),
}


def find(context: Context) -> Iterator[Finding]:
    """A finding per engine that is busy for 60 % of the device time beside one below 20 %."""
    if not context.device_ns:
        return
    share = {engine: context.hotspot(_rows(engine)).busy_ns / context.device_ns for engine in _MOVES}
    for engine, others in _MOVES.items():
        other = min(others, key=lambda candidate: share[candidate])
        if share[engine] < BUSY or share[other] > IDLE:
            continue
        factor = (share[engine] + share[other]) / 2 / share[engine]
        hot = context.hotspot(_rows(engine))
        yield context.finding(
            "engine_imbalance",
            f"{engine.title} is busy {percent(share[engine])} of the device time, {other.title} "
            f"{percent(share[other])}",
            f"Give every other tile of the elementwise work to {other.title}.",
            rows_change(f"engine:{engine.title.lower()}={factor:.2f}", _rows(engine), factor),
            place=hot.place,
            evidence={"busy_share": round(share[engine], 3), "idle_share": round(share[other], 3)},
        )


def _rows(engine: Engine) -> Select:
    def select(program: Program) -> tuple[Mask, Mask]:
        table = program.instructions
        return (table["engine"] == int(engine)) & (table["dma"] < 0), np.zeros(len(program.dmas), bool)

    return select
