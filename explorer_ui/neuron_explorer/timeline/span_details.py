"""Everything that is known of one span: its row, its source line, and what it belongs to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from neuron_explorer.timeline.parameters import ParameterError
from neuron_explorer.timeline.span_queries import row_query
from neuron_explorer.timeline.track_list import EXACT_NS
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.track import Track

LONGEST_VALUE = 4000
_LEVELS = (("raw_hlo_id", "hlo_name", "HLO"), ("raw_framework_id", "framework_name", "Operation"))


def span_details(profile: Profile, track: Track, row: int, depth: int) -> dict[str, Any]:
    """A span's row.

    Args:
        row: Row of the track's table.
        depth: Depth of the span; of a module it tells how much of the path is meant.

    Returns:
        `columns` (those that are not null), `source` ({"file", "line"} or null), `sql` (a query for the row),
        and `belongs`: what it belongs to from the inside out, each {"by", "value", "level", "name"} as `lit`
        takes them.

    Raises:
        ParameterError: The table has no such row.
    """
    try:
        values = profile.row(track.table, row)
    except IndexError as error:
        raise ParameterError(f"The track {track.id} has no span of row {row}.") from error
    columns = {name: _plain(value) for name, value in values.items() if value is not None}
    return {
        "columns": columns,
        "source": _source(values),
        "sql": row_query(track.table, values),
        "belongs": _belongs(values, track, depth),
    }


def module_path(layer: str, is_backward: bool, depth: int | None) -> str:
    """The path of the module that stands at a depth above an operation; None for the innermost.

    The track of modules puts a segment of its own above those of a backward pass.
    """
    segments = [segment for segment in layer.split("/") if segment]
    if depth is not None:
        segments = segments[: max(depth + (0 if is_backward else 1), 1)]
    return "/" + "/".join(segments)


def _belongs(values: Mapping[str, Any], track: Track, depth: int) -> list[dict[str, str]]:
    found = []
    if track.level != "module":
        # An operation of the framework is made of HLO operations; it names the first.
        levels = _LEVELS[1:] if track.level == "framework" else _LEVELS
        for column, name, level in levels:
            known = values.get(column)
            if known:
                title = str(values.get(name) or known)
                found.append({"by": column, "value": str(known), "level": level, "name": title})
    layer = values.get("layer")
    if layer:
        at = depth if track.level == "module" else None
        path = module_path(str(layer), bool(values.get("is_backward")), at)
        found.append({"by": "layer", "value": path, "level": "Module", "name": path})
    return found


def _source(values: Mapping[str, Any]) -> dict[str, Any] | None:
    file, line = values.get("source_file"), values.get("source_line")
    return {"file": str(file), "line": int(line)} if file and line else None


def _plain(value: Any) -> Any:
    """As JSON can hold it for JavaScript: no NaN, integers that are too large as texts, nothing endless."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -EXACT_NS < value < EXACT_NS else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
