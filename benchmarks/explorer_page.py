"""Drives a timeline in Chromium as a user does: opens it, moves about, goes where it never was."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.main_thread import FrameTimes, recorded

WIDTH, HEIGHT = 1600, 900
HOLD_MS = 1200
WHEEL_STEPS = 24
DRAG_STEPS = 40
TIMELINE = "window.neuronTimelines?.get('timeline')"
TIMEOUT_MS = 120_000

_SHARP_AFTER = f"""async ([startNs, endNs]) => {{
    const timeline = {TIMELINE};
    const from = performance.now();
    timeline.setView({{ range: {{ startNs, endNs }} }});
    while (!(timeline.statistics().sharpAt > from)) {{
        if (performance.now() - from > 20000) return Infinity;
        await new Promise((resolve) => requestAnimationFrame(resolve));
    }}
    return timeline.statistics().sharpAt - from;
}}"""


@contextmanager
def opened(browser: Any, url: str) -> Iterator[Any]:
    """A page at an address, in a window of its own size."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    try:
        page.goto(url)
        yield page
    finally:
        page.close()


def first_paint_s(page: Any) -> float:
    """Seconds from navigation until everything in sight is drawn from data of its own resolution."""
    sharp_at = page.wait_for_function(f"() => {TIMELINE}?.statistics().sharpAt", timeout=TIMEOUT_MS)
    return float(sharp_at.json_value()) / 1e3


def unseen_ranges_ms(page: Any, start_ns: float, end_ns: float, ranges: int) -> list[float]:
    """Milliseconds until ranges of any length, anywhere, are sharp."""
    chosen = random.Random(0)
    times = []
    for _ in range(ranges):
        length = (end_ns - start_ns) * 10 ** chosen.uniform(-5, -0.3)
        low = chosen.uniform(start_ns, end_ns - length)
        times.append(float(page.evaluate(_SHARP_AFTER, [low, low + length])))
        page.wait_for_timeout(150)  # neighbours are fetched, as while a user looks
    return times


def gestures(browser: Any, page: Any, x: float, y: float) -> dict[str, FrameTimes]:
    """Frames while moving about by keys, wheel and dragging.

    The Perfetto UI has the same gestures, so the same code drives it.

    Args:
        x, y: A point over the tracks.
    """
    page.mouse.move(x, y)
    found = {}
    for name, gesture in _GESTURES.items():
        with recorded(browser, page) as frames:
            gesture(page, x, y)
        found[name] = frames
    return found


def renderer_bytes(browser: Any) -> int:
    """Memory of the page's process: what is its own, and its share of what is not."""
    return _proportional_bytes(renderer(browser))


def peak_bytes(process_id: int) -> int:
    """The most memory that a process had at once; 0 where the system does not tell."""
    try:
        lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def renderer(browser: Any) -> int:
    """The process of the browser's page: of its renderers the one with the most memory."""
    return max(renderers(browser), key=_proportional_bytes)


def renderers(browser: Any) -> list[int]:
    """The processes of all pages of the browser."""
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return [int(process["id"]) for process in processes if process["type"] == "renderer"]


def cpu_s(process_id: int) -> float:
    """CPU time that a process has taken, in seconds; 0 where the system does not tell."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return 0.0
    user, system = text.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _proportional_bytes(process_id: int) -> int:
    try:
        text = Path(f"/proc/{process_id}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:")), 0)


def _hold(page: Any, key: str) -> None:
    page.keyboard.down(key)
    page.wait_for_timeout(HOLD_MS)
    page.keyboard.up(key)


def _zoom_by_keys(page: Any, x: float, y: float) -> None:
    _hold(page, "w")
    _hold(page, "s")


def _pan_by_keys(page: Any, x: float, y: float) -> None:
    for _ in range(3):
        page.keyboard.press("w")
    _hold(page, "d")
    _hold(page, "a")


def _zoom_by_wheel(page: Any, x: float, y: float) -> None:
    page.keyboard.down("Control")
    for step in range(2 * WHEEL_STEPS):
        page.mouse.wheel(0, -120 if step < WHEEL_STEPS else 120)
        page.wait_for_timeout(16)
    page.keyboard.up("Control")


def _drag(page: Any, x: float, y: float) -> None:
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(DRAG_STEPS):
        page.mouse.move(x - 400 * step / DRAG_STEPS, y)
        page.wait_for_timeout(12)
    page.mouse.up()
    page.mouse.move(x, y)


_GESTURES: dict[str, Callable[[Any, float, float], None]] = {
    "zoom by keys": _zoom_by_keys,
    "pan by keys": _pan_by_keys,
    "zoom by wheel": _zoom_by_wheel,
}
