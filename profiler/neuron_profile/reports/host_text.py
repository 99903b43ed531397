"""What the host did while the device was idle, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from neuron_profile.analysis.host_activity import HostActivity, HostIdle
from neuron_profile.reports.places import place
from neuron_profile.reports.quantities import percent

MOST = 3
LEAST_SHARE = 0.02
_DOING: Mapping[str, str] = {
    "data_loading": "loading data",
    "garbage_collection": "collecting garbage",
    "lock": "waiting for a thread",
    "input_output": "reading and writing",
    "copy": "copying to or from the device",
    "collective": "in a collective",
    "import": "importing modules",
    "sleep": "sleeping",
    "optimizer": "in the optimizer",
    "python": "running Python and dispatching",
}


def host_text(idle: HostIdle) -> str:
    """The activities behind most of the idle time, with their part of all time and the line; "" for none."""
    shown = [each for each in idle.activities[:MOST] if each.idle_ns >= LEAST_SHARE * idle.window_ns]
    return "; ".join(_activity_text(each, idle.window_ns) for each in shown)


def _activity_text(activity: HostActivity, window_ns: int) -> str:
    at = f" at {place(activity.place)}" if activity.file else ""
    return f"{_DOING.get(activity.kind, activity.kind)} {percent(activity.idle_ns / window_ns)}{at}"
