"""The device waits while the host does something that is not computing: loading data, tracing, writing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.host_activity import WAITING_FOR_WORKERS, HostActivity
from neuron_profile.analysis.occupancy import Bound
from neuron_profile.reports.quantities import percent
from neuron_tools.frozen import frozen

MINIMUM_SHARE = 0.05


@frozen
class _Words:
    """How a kind of activity is told: `The device waits ... of the time while the host ...`."""

    doing: str
    change: str


_WORDS: Mapping[str, _Words] = {
    "data_loading": _Words(
        "loads data",
        "Load beside the computation: DataLoader(num_workers=...), with prefetch_factor and "
        "persistent_workers=True; move work that is the same in every epoch out of __getitem__.",
    ),
    "tracing": _Words(
        "traces a function",
        "Give the compiled function inputs of the same shapes, types and Python values; mark sizes dynamic "
        "(torch.compile(dynamic=True)) and pass changing numbers as tensors.",
    ),
    "compilation": _Words(
        "compiles a program",
        "Give the compiled function inputs of the same shapes, types and Python values, so that what was "
        "compiled once serves again.",
    ),
    "garbage_collection": _Words(
        "collects garbage",
        "Keep fewer objects that refer to each other; gc.freeze() after setting up, or gc.disable() and a "
        "gc.collect() every few hundred steps.",
    ),
    "lock": _Words(
        "waits for another thread",
        "Hold the lock for a shorter time, or hand results over in a queue; what takes long in Python "
        "belongs into another process.",
    ),
    "input_output": _Words(
        "reads or writes",
        "Do it every hundredth step, or in a thread or process beside the computation.",
    ),
    "pickling": _Words(
        "pickles or unpickles objects",
        "Hand tensors and arrays over instead of Python objects; they go through shared memory.",
    ),
    "sleep": _Words("sleeps", "Wait for what is awaited instead of sleeping."),
    "import": _Words("imports modules", "Import before the first step."),
}
KINDS = tuple(_WORDS)
"""Kinds of activity that are a cause of their own."""


def find(context: Context) -> Iterator[Finding]:
    """A finding per kind and line that is behind at least 5 % of the time looked at."""
    idle = context.host_idle
    if idle is None or context.occupancy.bound not in (Bound.HOST, Bound.BOTH):
        return
    for activity in idle.of(KINDS):
        if activity.idle_ns >= MINIMUM_SHARE * idle.window_ns:
            yield _finding(context, activity, idle.window_ns)


def _finding(context: Context, activity: HostActivity, window_ns: int) -> Finding:
    words = _WORDS[activity.kind]
    detail = f" ({activity.detail})" if activity.detail else ""
    file, _, line = activity.inside.rpartition(":")
    share = activity.idle_ns / window_ns
    return Finding(
        "host_activity",
        f"The device waits {percent(share)} of the time while the host {words.doing}{detail}",
        _more_workers(activity) or words.change,
        Place(activity.file, activity.line, activity.function),
        gain_ns=activity.idle_ns,
        device_gain_ns=0,
        total_ns=context.what_if.recorded_ns() if context.what_if is not None else window_ns,
        evidence={
            "kind": activity.kind,
            "detail": activity.detail,
            "idle_ns": activity.idle_ns,
            **({"workers_at": activity.workers_at} if activity.workers_at else {}),
        },
        library_place=Place(file, int(line)) if file else Place(),
    )


def _more_workers(activity: HostActivity) -> str:
    """What to do where worker processes are too slow together."""
    if activity.detail != WAITING_FOR_WORKERS:
        return ""
    busy = f" They spend most of it at {activity.workers_at}." if activity.workers_at else ""
    return f"Start more of them (DataLoader(num_workers=...)), or let them do less.{busy}"
