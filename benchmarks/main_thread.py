"""What a page's main thread did, frame by frame, from Chromium's own trace: the same for any page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

CATEGORIES = ("toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline", "__metadata")
TASKS = ("RunTask", "ThreadControllerImpl::RunTask")
FRAME = "FireAnimationFrame"


@dataclass
class FrameTimes:
    """Frames of a recording.

    Attributes:
        busy_ms: CPU time of the main thread from the start of each frame to that of the next: what it does,
            not how long others keep it from doing it. Shape (frames,).
        apart_ms: Time between the starts of frames, shape (frames,).
    """

    busy_ms: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    apart_ms: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


@contextmanager
def recorded(browser: Any, page: Any) -> Iterator[FrameTimes]:
    """Record what a page's main thread does inside a `with` statement; filled in at its end.

    Args:
        browser: A playwright `Browser` of Chromium.
        page: A page of it.
    """
    found = FrameTimes()
    browser.start_tracing(page=page, categories=list(CATEGORIES))
    try:
        yield found
    finally:
        events = json.loads(browser.stop_tracing())["traceEvents"]
        times = frame_times(events)
        found.busy_ms, found.apart_ms = times.busy_ms, times.apart_ms


def frame_times(events: Sequence[dict[str, Any]]) -> FrameTimes:
    """Frames of the thread that drew most of them."""
    frames = [event for event in events if event.get("name") == FRAME and event.get("ph") == "X"]
    if len(frames) < 3:
        return FrameTimes()
    threads = [(event["pid"], event["tid"]) for event in frames]
    thread = max(set(threads), key=threads.count)
    tasks = [
        event for event in events if (event.get("pid"), event.get("tid")) == thread and event.get("ph") == "X"
    ]
    names = {event["name"] for event in tasks}
    wanted = next(name for name in TASKS if name in names)
    work = sorted((event["ts"], _cpu_us(event)) for event in tasks if event["name"] == wanted)
    begin, length = np.array(work, np.float64).T
    drawn = np.array([event["ts"] for event, owner in zip(frames, threads, strict=True) if owner == thread])
    # A frame is a task in which the page drew, however many callbacks it has, with the tasks after it.
    starts = begin[np.unique(np.searchsorted(begin, drawn, side="right") - 1)]
    owner = np.searchsorted(starts, begin, side="right") - 1
    inside = (owner >= 0) & (owner < len(starts) - 1)
    busy = np.bincount(owner[inside], length[inside], minlength=len(starts) - 1)[: len(starts) - 1]
    return FrameTimes(busy / 1e3, np.diff(starts) / 1e3)


def _cpu_us(event: dict[str, Any]) -> float:
    """CPU time of a task; its duration where the system does not tell."""
    return float(event.get("tdur", event.get("dur", 0)))
