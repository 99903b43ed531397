"""How soon every panel of the workspace shows another range of a profile of 10 million spans.

Ranges that were never seen, each a small part of the profile as a step is, are analysed as panels do it: what
belongs to a selection, the sums of device time, the roofline, the charged rows of the timeline. Each panel is
asked alone, and of other ranges all of them at once, as the page asks. Then ranges of half of the profile, of
which charged time comes from the sums that the server makes in the background once a range is shown.
Processor time is told beside the clock's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from benchmarks import synthetic_profile
from benchmarks.figures import Figure, Target
from neuron_explorer import results
from neuron_explorer.analyses import Analyses
from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_explorer.timeline.charged_tiles import ChargedTiles, is_charged
from neuron_explorer.timeline.parameters import TileRange
from neuron_explorer.workspace.related import PIECES

SPANS, QUICK_SPANS = 10_000_000, 400_000
RANGES, QUICK_RANGES = 12, 4
PARTS = 400
"""A range is one of so many equal parts of the profile: some 25,000 spans, as a training step has."""
TIMELINE_PIXELS = 1100
"""How wide the workspace's timeline is in a window of 1600 x 900."""
MOST = Target("<=", 200, "python")
Taken = tuple[float, float]
Rescope = Callable[[tuple[int, int]], object]


def figures(quick: bool = False) -> list[Figure]:
    """Time of each panel's analysis for a new range, and of all together."""
    spans, count = (QUICK_SPANS, QUICK_RANGES) if quick else (SPANS, RANGES)
    size = f"{spans / 1e6:g} M spans"
    with _panels(spans) as (panels, bounds, prepare):
        began_s = process_time()
        prepare()
        prepared_s = process_time() - began_s
        ranges = list(_ranges(bounds, 2 * count))
        alone = [_measured(panel, range_ns) for range_ns in ranges[::2] for panel in panels.values()]
        together = [_measured(_at_once(panels), range_ns) for range_ns in ranges[1::2]]
        long = [_measured(panels["selection"], half) for half in _halves(bounds, count)]
    rows = [
        _figure(f"re-scope, {name}", alone[place :: len(panels)], size) for place, name in enumerate(panels)
    ]
    return [
        Figure(f"sums for every range, CPU time, {size}", prepared_s, "s", note="once, in the background"),
        _figure("re-scope to half of the profile, selection", long, size, MOST),
        *rows,
        _figure("re-scope, all panels at once", together, size, MOST),
    ]


def _figure(name: str, taken: Sequence[Taken], size: str, target: Target | None = None) -> Figure:
    clock, cpu = np.array(taken).T * 1e3
    note = f"processor time {np.median(cpu):.0f} ms (median); {len(taken)} ranges never seen"
    return Figure(f"{name}, p95, {size}", float(np.quantile(clock, 0.95)), "ms", target, note=note)


def _measured(panel: Rescope, range_ns: tuple[int, int]) -> Taken:
    """Seconds of the clock and of the processor."""
    clock, cpu = perf_counter(), process_time()
    panel(range_ns)
    return perf_counter() - clock, process_time() - cpu


def _at_once(panels: Mapping[str, Rescope]) -> Rescope:
    """All panels in threads of their own, as a server answers them; until the last is there."""

    def rescope(range_ns: tuple[int, int]) -> None:
        with ThreadPoolExecutor(len(panels)) as threads:
            list(threads.map(lambda panel: panel(range_ns), panels.values()))

    return rescope


def _ranges(bounds: tuple[int, int], count: int) -> Iterator[tuple[int, int]]:
    length = max((bounds[1] - bounds[0]) // PARTS, 1)
    for part in np.linspace(1, PARTS - 2, count).astype(int).tolist():
        yield bounds[0] + part * length, bounds[0] + (part + 1) * length


def _halves(bounds: tuple[int, int], count: int) -> Iterator[tuple[int, int]]:
    """Ranges of half of the profile's length."""
    length = (bounds[1] - bounds[0]) // 2
    for begin in np.linspace(bounds[0] + 1, bounds[1] - length - 1, count).astype(int).tolist():
        yield begin, begin + length


@contextmanager
def _panels(
    spans: int,
) -> Iterator[tuple[dict[str, Rescope], tuple[int, int], Callable[[], object]]]:
    """What each panel computes of a range, the profile's own range, and what makes the sums for long ones."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "synthetic.nprof"
        synthetic_profile.write(path, spans)
        with ProfileLibrary([path]) as library:
            analyses, wanted = Analyses(library), profile_id(path)
            profile, tiles = library.get(wanted), ChargedTiles()
            places = [place for place, track in enumerate(profile.tracks()) if is_charged(track)]

            def of(name: str, *arguments: str) -> Rescope:
                return lambda range_ns: analyses.now(wanted, name, *arguments, range_ns=range_ns)

            def charged(range_ns: tuple[int, int]) -> object:
                return tiles.tiles(profile, places, TileRange.around(*range_ns, TIMELINE_PIXELS))

            yield {
                "selection": of(PIECES), "sums": of(results.OVERVIEW),
                "roofline": of(results.ROOFLINE, "operation"), "timeline": charged,
            }, profile.time_range_ns(), lambda: analyses.now(wanted, results.CHARGE_INDEX)  # fmt: skip
