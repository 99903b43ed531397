"""What the host did while the device was idle, in a sentence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import accumulate

from neuron_profile.analysis.host_activity import HostActivity, HostIdle
from neuron_profile.reports.places import place
from neuron_profile.reports.quantities import percent

MOST = 3
LEAST_SHARE = 0.02
DISPATCHING = "python"
"""The kind of activity of a host that only runs the program's own Python."""
_DOING: Mapping[str, str] = {
    "data_loading": "loading data",
    "garbage_collection": "collecting garbage",
    "lock": "waiting for a thread",
    "input_output": "reading and writing",
    "copy": "copying to or from the device",
    "collective": "in a collective",
    "compilation": "compiling",
    "import": "importing modules",
    "sleep": "sleeping",
    "optimizer": "in the optimizer",
    DISPATCHING: "running Python and dispatching",
}


def host_text(idle: HostIdle) -> str:
    """The activities behind most of the idle time, with their part of all time and the line; "" for none."""
    shown = [each for each in idle.activities[:MOST] if each.idle_ns >= LEAST_SHARE * idle.window_ns]
    return "; ".join(_activity_text(each, idle.window_ns) for each in shown)


def leading_text(idle: HostIdle) -> str:
    """What the host did for most of the idle time, and where if that is one thing; "" for dispatching."""
    times: defaultdict[str, int] = defaultdict(int)
    for activity in idle.activities:
        times[activity.kind] += activity.idle_ns
    kinds = sorted(times, key=lambda kind: -times[kind])
    sums = accumulate(times[kind] for kind in kinds)
    needed = next((count for count, time_ns in enumerate(sums, 1) if 2 * time_ns > idle.idle_ns), 0)
    if not 0 < needed <= MOST or DISPATCHING in kinds[:needed]:
        return ""
    doing = " or ".join(map(_doing, kinds[:needed]))
    return doing if needed > 1 else f"{doing}{_at(idle.of(kinds[:1])[0])}"


def _activity_text(activity: HostActivity, window_ns: int) -> str:
    return f"{_doing(activity.kind)} {percent(activity.idle_ns / window_ns)}{_at(activity)}"


def _doing(kind: str) -> str:
    return _DOING.get(kind, kind)


def _at(activity: HostActivity) -> str:
    return f" at {place(activity.place)}" if activity.file else ""
