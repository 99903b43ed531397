"""The timeline in a browser without a GPU: how soon it is there, how fluid it is, what it holds in memory.

The peer is the real Perfetto UI with the same spans and the same gestures. A million spans take 1.5 GB there;
with four million it was not ready within two minutes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks import explorer_pages, explorer_rescope, synthetic_profile
from benchmarks.explorer_page import (
    TIMELINE,
    WIDTH,
    cpu_s,
    first_paint_s,
    gestures,
    opened,
    peak_bytes,
    renderer,
    renderer_bytes,
    unseen_ranges_ms,
)
from benchmarks.figures import Figure, Peer, Target
from benchmarks.main_thread import FrameTimes
from neuron_explorer.warm_up import compile_loops
from neuron_tools.frozen import frozen

SMALL, LARGE = 1_000_000, 100_000_000
QUICK_RANGES, RANGES = 12, 40
CACHE = Path(__file__).parents[1] / ".cache" / "benchmarks"
MILLION_FRAME_MS, FRAME_MS = 16, 33


@frozen
class Measured:
    """What one timeline did."""

    first_paint_s: float
    unseen_ms: list[float]
    frames: dict[str, FrameTimes]
    page_bytes: int
    painter: str
    paint_cpu_s: float = float("nan")
    unseen_cpu_ms: float = float("nan")
    server_bytes: int = 0
    workspace_paint_s: float = float("nan")
    address_s: float = float("nan")

    def frame_ms(self, share: float) -> float:
        """A quantile of the main thread's time for a frame, over all gestures."""
        busy = np.concatenate([frames.busy_ms for frames in self.frames.values()])
        return float(np.quantile(busy, share)) if len(busy) else float("nan")

    @property
    def frames_per_second(self) -> float:
        """Frames over all gestures."""
        apart = np.concatenate([frames.apart_ms for frames in self.frames.values()])
        return 1e3 / float(apart.mean()) if len(apart) else 0.0


def run(quick: bool = False) -> list[Figure]:
    """All figures; `quick` takes a million spans only."""
    ranges = QUICK_RANGES if quick else RANGES
    small = measure(SMALL, ranges)
    figures = own_figures(small, SMALL, MILLION_FRAME_MS) + peer_figures(SMALL, small)
    if quick:
        return figures + explorer_pages.figures(quick=True) + explorer_rescope.figures(quick=True)
    figures += own_figures(measure(LARGE, ranges), LARGE, FRAME_MS)
    return figures + explorer_pages.figures() + explorer_rescope.figures()


def own_figures(measured: Measured, spans: int, frame_ms: float) -> list[Figure]:
    """Figures of our timeline with a profile of so many spans."""
    size = f"{spans / 1e6:.0f} M spans"
    gestures_note = (
        f"{', '.join(measured.frames)}; {measured.frames_per_second:.0f} frames/s; {measured.painter}"
    )
    return [
        Figure(f"first paint, {size}", measured.first_paint_s, "s",
               Target("<=", 1, "python"), note="from navigation"),
        Figure(f"first paint, {size}, in the workspace", measured.workspace_paint_s, "s",
               Target("<=", 1, "python"), note="from navigation to what the command prints"),
        Figure(f"until the command prints its address, {size}", measured.address_s, "s"),
        Figure(f"first paint, CPU time, {size}", measured.paint_cpu_s, "s", note="server and page"),
        Figure(f"main thread per frame, p95, {size}", measured.frame_ms(0.95), "ms",
               Target("<=", frame_ms, "python"),
               note=gestures_note),
        Figure(f"main thread per frame, median, {size}", measured.frame_ms(0.5), "ms"),
        Figure(f"unseen range sharp, p95, {size}", float(np.quantile(measured.unseen_ms, 0.95)), "ms",
               Target("<=", 150, "python"), note=f"{len(measured.unseen_ms)} ranges of any length, anywhere"),
        Figure(f"unseen range sharp, median, {size}", float(np.median(measured.unseen_ms)), "ms"),
        Figure(f"unseen range sharp, CPU time, {size}", measured.unseen_cpu_ms, "ms",
               note="server and page; mean, with what is fetched of the neighbourhood"),
        Figure(f"memory of the page, {size}", measured.page_bytes / 2**20, "MiB", Target("<=", 600),
               note="the renderer's process, after everything above"),
        Figure(f"peak memory of the server, {size}", measured.server_bytes / 2**20, "MiB",
               Target("<=", 1024)),
    ]  # fmt: skip


def peer_figures(spans: int, ours: Measured) -> list[Figure]:
    """The same in the Perfetto UI."""
    size = f"{spans / 1e6:.0f} M spans"
    peer = measure_peer(spans)
    values = [
        ("until it shows", ours.first_paint_s, peer.first_paint_s, "s"),
        ("main thread per frame, p95", ours.frame_ms(0.95), peer.frame_ms(0.95), "ms"),
        ("time between frames", 1e3 / ours.frames_per_second, 1e3 / max(peer.frames_per_second, 1e-9), "ms"),
        ("memory of the page", ours.page_bytes / 2**20, peer.page_bytes / 2**20, "MiB"),
    ]
    return [
        Figure(f"{name}, {size}, beside Perfetto", own, unit, None, Peer("Perfetto UI", other))
        for name, own, other, unit in values
    ]


def measure(spans: int, ranges: int) -> Measured:
    """Open the Explorer's page of a profile and use it."""
    from tests.browser.chromium import open_browser

    profile = profile_of_size(spans)
    compile_loops()  # a wheel has them
    with open_browser() as browser:  # as a user's, it is open when the command prints its address
        began = perf_counter()
        with _served(profile) as (url, _):
            address_s = perf_counter() - began
            with opened(browser, url) as page:
                in_workspace = first_paint_s(page)
    with (
        open_browser() as browser,
        _served(profile, "timeline") as (url, server),
        opened(browser, url) as page,
    ):
        paint = first_paint_s(page)
        paint_cpu_s = cpu_s(server) + cpu_s(renderer(browser))
        page.wait_for_timeout(2500)  # the painters are compared once, when nothing moves
        frames = gestures(browser, page, WIDTH * 0.6, 480)
        start_ns, end_ns = page.evaluate(f"{TIMELINE}.ready.then(({{startNs, endNs}}) => [startNs, endNs])")
        before_s = cpu_s(server) + cpu_s(renderer(browser))
        unseen = unseen_ranges_ms(page, start_ns, end_ns, ranges)
        unseen_cpu_ms = (cpu_s(server) + cpu_s(renderer(browser)) - before_s) / ranges * 1e3
        painter = str(page.evaluate(f"{TIMELINE}.statistics().painter"))
        memory = renderer_bytes(browser)
        peak = peak_bytes(server)
        return Measured(
            paint, unseen, frames, memory, painter, paint_cpu_s, unseen_cpu_ms, peak, in_workspace, address_s
        )


def measure_peer(spans: int) -> Measured:
    """Open the same spans in the Perfetto UI and do the same."""
    from tests.browser.chromium import open_browser
    from tests.browser.perfetto_ui import perfetto_ui

    trace = _trace(spans)
    with open_browser() as browser:
        started = perf_counter()
        with perfetto_ui(trace, browser) as ui:
            paint = perf_counter() - started
            ui.page.set_viewport_size({"width": WIDTH, "height": 900})
            ui.page.wait_for_timeout(2500)
            frames = gestures(browser, ui.page, WIDTH * 0.6, 480)
            return Measured(paint, [], frames, renderer_bytes(browser), "Perfetto UI")


def profile_of_size(spans: int) -> Path:
    """A synthetic profile of that size, made once."""
    folder = CACHE / f"explorer-{spans}.nprof"
    if not (folder / "timeline").is_dir():
        shutil.rmtree(folder, ignore_errors=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        synthetic_profile.write(folder, spans)
    return folder


def _trace(spans: int) -> Path:
    """The same profile as a Perfetto trace, made once."""
    from neuron_tools.profile.export import export_perfetto
    from neuron_tools.profile.reader import open_profile

    trace = CACHE / f"explorer-{spans}.pftrace"
    if not trace.is_file():
        with open_profile(profile_of_size(spans)) as profile:
            export_perfetto(profile, trace)
    return trace


@contextmanager
def _served(profile: Path, page: str = "workspace") -> Iterator[tuple[str, int]]:
    """The address that the command prints, of the workspace or of another page, and its process."""
    command = [sys.executable, "-m", "neuron_explorer.cli", str(profile), "--no-browser", "-p", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = next(found[0] for line in server.stdout if (found := re.search(r"http://\S+", line)))
            yield address.replace("/workspace?", f"/{page}?"), server.pid
        finally:
            server.terminate()
