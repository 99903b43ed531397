"""What the host did: the calls of its threads as a flame graph, and why the device was idle, by line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_explorer.analyses import analysis
from neuron_explorer.figures.icicle import IciclePart, icicle_figure
from neuron_explorer.page import Page, View
from neuron_explorer.parts.chart import chart_card
from neuron_explorer.parts.quantities import Cell, share_cell, time_cell
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.table import table_card
from neuron_explorer.parts.tabs import tabs
from neuron_explorer.sections import section
from neuron_profile.analysis.host_activity import HostActivity, HostIdle, find_host_idle
from neuron_profile.analysis.host_stacks import CallRow, HostCall, call_rows, host_calls
from neuron_profile.reports.places import short_path
from neuron_tools.profile.reader import Profile

HOST_CALLS, HOST_IDLE = "host-calls", "host-idle"
CELLS, ROWS, DEPTH = 400, 100, 9
_TIMES = {"all": "All time", "idle": "While the device is idle"}
_HEADINGS = ("What the host did", "Line", "Device idle", "Share of the time", "Most of it at")


@analysis(HOST_CALLS, "Summing up the host's calls")
def _calls(profile: Profile) -> HostCall | None:
    return host_calls(profile)


@analysis(HOST_IDLE, "Charging idle time to what the host did")
def _idle(profile: Profile) -> HostIdle | None:
    return find_host_idle(profile)


def layout(view: View) -> list[Any]:
    """Components of the page; `time` in the address chooses which time the calls have."""
    return [tabs(view, "time", "Calls by", _TIMES, _chosen(view)), CALLS.show(view)]


def _chosen(view: View) -> str:
    asked = view.address.get("time")
    return asked if asked in _TIMES else "all"


@section("host/calls", HOST_CALLS, HOST_IDLE)
def CALLS(view: View) -> Any:
    """Flame graph and table, or a sentence where the host was not sampled."""
    root: HostCall | None = view.result(HOST_CALLS)
    idle: HostIdle | None = view.result(HOST_IDLE)
    if root is None:
        return empty_state(
            "Nothing is known of the host here.",
            "Captures sample its stacks where the clock is measured, and not with --no-host-samples. "
            "In a short range there may be no sample: choose a longer one.",
        )
    return [*_flame(view, root), *_reasons(view, idle)]


def _flame(view: View, root: HostCall) -> list[Any]:
    while_idle = _chosen(view) == "idle"
    rows = call_rows(root, CELLS, while_idle=while_idle)
    if while_idle and not root.idle_ns:
        return [empty_state("The device was not idle here.")]
    explains = (
        "Height is time, callers on the left; the color tells what a call mostly did. Click a part to go "
        "into it. What threads beside the main one wait is left out."
    )
    return [
        chart_card(
            "Calls of the host's threads and of loading processes",
            icicle_figure([call_part(row, while_idle=while_idle) for row in rows], view.theme, depth=DEPTH),
            explains=explains,
        )
    ]


def call_part(row: CallRow, *, while_idle: bool) -> IciclePart:
    """A call as a part of the icicle."""
    call = row.call
    kind = call.kind.replace("_", " ")
    note = f"{call.file}:{call.line}, {kind}" if call.file else kind
    time_ns = call.idle_ns if while_idle else call.time_ns
    at = f"{call.file.rpartition('/')[2]}:{call.line}"
    name = at if call.name == "<module>" else f"{call.name} · {at}" if call.file else call.name
    return IciclePart(row.parent, name, time_ns, call.kind if call.file else "", note)


def _reasons(view: View, idle: HostIdle | None) -> list[Any]:
    if idle is None or not idle.activities:
        return []
    rows = [_row(view, activity, idle.window_ns) for activity in idle.activities[:ROWS]]
    return [table_card("Why the device was idle", _HEADINGS, rows, name="host", short=True)]


def _row(view: View, activity: HostActivity, window_ns: int) -> Sequence[Cell | str]:
    kind = activity.kind.replace("_", " ")
    inside = activity.workers_at or activity.inside
    return (
        f"{kind}, {activity.detail}" if activity.detail not in ("", activity.kind) else kind,
        _line(view, f"{activity.file}:{activity.line}" if activity.file else ""),
        time_cell(activity.idle_ns),
        share_cell(activity.idle_ns / window_ns if window_ns else None),
        _line(view, inside),
    )


def _line(view: View, place: str) -> Cell:
    file, _, line = place.rpartition(":")
    if not file:
        return Cell("")
    return Cell(
        f"{short_path(file)}:{line}", href=view.address.to("/source", file=file, line=line), title=file
    )


PAGE = Page("/host", "Host", layout, group="Where time goes")
