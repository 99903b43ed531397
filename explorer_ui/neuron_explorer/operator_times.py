"""Grouped operations with the device time that they are charged with, as the other pages show it."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from neuron_explorer import results
from neuron_explorer.grid_sources import GROUPS
from neuron_explorer.page import View
from neuron_profile.analysis.hotspots import Cost, Hotspots
from neuron_profile.analysis.overview import Overview

CHARGED = ("operation", "module", "line")
"""Sources whose groups are known to the charges; of others, the time in which one of a group ran is shown."""
_JOINED = """
SELECT coalesce(work.name, charged.name) AS name, coalesce(charged.time_ns, 0) AS time_ns,
    charged.time_ns / $device_ns AS share, coalesce(charged.calls, work.calls) AS calls,
    charged.time_ns / nullif(charged.calls, 0) AS mean_ns,
    work.longest_span_ns, work.hbm_bytes, work.flops, work.flops_per_byte
FROM work FULL JOIN charged USING (name)
"""


def grouped_rows(view: View, source: str) -> pa.Table:
    """All rows of a grouped source; both analyses that it needs are waited for.

    Raises:
        NeuronToolsError: One of them failed.
    """
    work: pa.Table = view.result(GROUPS, source)
    if source not in CHARGED:
        return work
    overview: Overview = view.result(results.OVERVIEW)
    costs = charged_costs(overview.hotspots, source)
    return with_charged_time(work, costs, overview.hotspots.device_ns) if costs else work


def needs(source: str) -> list[tuple[str, ...]]:
    """The analyses that `grouped_rows` waits for."""
    return [(GROUPS, source), *([(results.OVERVIEW,)] if source in CHARGED else [])]


def charged_costs(hotspots: Hotspots, source: str) -> dict[str, Cost]:
    """Cost by the name that a source gives its groups; empty where no time belongs to operations."""
    if source == "operation":
        return {row.name: row.cost for row in hotspots.operations}
    if source == "line":
        return {f"{row.place.file}:{row.place.line}": row.cost for row in hotspots.exact_lines}
    found: dict[str, Cost] = {}
    for charge in hotspots.charges:
        before = found.get(charge.origin.module, Cost(0.0, 0.0, 0))
        forward, backward = (0.0, charge.device_ns) if charge.origin.backward else (charge.device_ns, 0.0)
        found[charge.origin.module] = Cost(
            before.forward_ns + forward, before.backward_ns + backward, before.count + charge.count
        )
    return found


def with_charged_time(work: pa.Table, costs: Mapping[str, Cost], device_ns: float) -> pa.Table:
    """Groups with charged time, share of the device time and calls in place of those of their HLO operations.

    Args:
        work: Columns of a grouped source.
        costs: By name of a group; groups that only one of the two knows are there too.
    """
    import duckdb

    charged = pa.table(
        {
            "name": pa.array(list(costs), pa.string()),
            "time_ns": pa.array([cost.device_ns for cost in costs.values()], pa.float64()),
            "calls": pa.array([cost.count for cost in costs.values()], pa.int64()),
        }
    )
    with duckdb.connect(":memory:") as database:
        database.register("work", work)
        database.register("charged", charged)
        joined = database.sql(_JOINED, params={"device_ns": device_ns or None}).to_arrow_table()
    return joined
