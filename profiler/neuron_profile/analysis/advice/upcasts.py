"""Casts that operators of their own make at lines whose products take operands cast to fp32."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.line_calls import Call, calls_by_line
from neuron_profile.analysis.upcast_sources import upcast_lines

_CASTS = frozenset({"aten::copy_", "aten::_to_copy"})


def upcasts(context: Context) -> dict[tuple[str, int], Sequence[Call]]:
    """By file and line; compiled modules have none, as a compiler joins casts with what is around them."""
    by_line = calls_by_line(context)
    lines = {file: upcast_lines(context.texts.lines(file)) for file in {file for file, _ in by_line}}
    casts = {
        (file, line): [call for call in calls if call.name in _CASTS and not call.is_copy]
        for (file, line), calls in by_line.items()
        if line in lines[file]
    }
    return {place: found for place, found in casts.items() if found}
