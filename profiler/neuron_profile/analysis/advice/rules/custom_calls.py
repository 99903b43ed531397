"""Operations without a native lowering: computed on the host, timed as the movement of their bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import rows_change
from neuron_tools.arrays import Mask
from neuron_tools.records.program import Flag, Program

MINIMUM_SHARE = 0.005


def find(context: Context) -> Iterator[Finding]:
    """One finding for all custom calls, at the line that has most of their time."""
    hot = context.large_hotspot(_custom, MINIMUM_SHARE)
    if hot is None:
        return
    yield context.finding(
        "custom_calls",
        f"{hot.place.operation or 'An operation'} has no native lowering",
        "Write it with operations that have one (docs/operators.md lists those that have none), or as "
        "an NKI kernel.",
        rows_change(_custom, 0.0),
        place=hot.place,
        evidence={"busy_ns": round(hot.busy_ns)},
    )


def _custom(program: Program) -> tuple[Mask, Mask]:
    calls = np.array([hlo.opcode == "custom_call" for hlo in program.hlo] or [False], bool)
    # An NKI kernel is a custom call too, but has instructions of its own.
    table = program.instructions
    guessed = np.zeros(len(calls), bool)
    guessed[table["hlo"][(table["flags"] & int(Flag.ESTIMATE)) != 0]] = True
    calls &= guessed

    def at(rows: np.ndarray) -> Mask:
        chosen: Mask = (rows >= 0) & calls[np.maximum(rows, 0)]
        return chosen

    return at(program.instructions["hlo"]), at(program.dmas["hlo"])
