"""How soon every panel of the workspace shows another range of a profile of 10 million spans.

Ranges that were never seen, each a small part of the profile as a step is, are analysed as panels do it: what
belongs to a selection, the sums of device time, the roofline, the charged rows of the timeline. Then ranges
of half of the profile, of which charged time comes from the sums that the server makes in the background once
a range is shown. Processor time is told beside the clock's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
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
from neuron_explorer.timeline.parameters import BUCKETS, TileRange
from neuron_explorer.workspace.related import PIECES

SPANS, QUICK_SPANS = 10_000_000, 400_000
RANGES, QUICK_RANGES = 12, 4
PARTS = 400
"""A range is one of so many equal parts of the profile: some 25,000 spans, as a training step has."""
MOST_MS = 200
Rescope = Callable[[tuple[int, int]], object]


def figures(quick: bool = False) -> list[Figure]:
    """Time of each panel's analysis for a new range, and of all together."""
    spans, count = (QUICK_SPANS, QUICK_RANGES) if quick else (SPANS, RANGES)
    size = f"{spans / 1e6:g} M spans"
    with _panels(spans) as (panels, bounds, prepare):
        began_s = process_time()
        prepare()
        prepared_s = process_time() - began_s
        taken = [_measured(panels, range_ns) for range_ns in _ranges(bounds, count)]
        long = [_measured({"selection": panels["selection"]}, half)[0] for half in _halves(bounds, count)]
    found = [
        Figure(f"sums for every range, CPU time, {size}", prepared_s, "s", note="once, in the background"),
        Figure(f"re-scope to half of the profile, selection, p95, {size}",
               float(np.quantile([clock for clock, _ in long], 0.95)) * 1e3, "ms",
               Target("<=", MOST_MS, "python"),
               note=f"processor time {np.median([cpu for _, cpu in long]) * 1e3:.0f} ms (median)"),
    ]  # fmt: skip
    for place, name in enumerate([*panels, "all panels"]):
        clock = np.array([times[place][0] for times in taken]) * 1e3
        cpu = np.array([times[place][1] for times in taken]) * 1e3
        target = Target("<=", MOST_MS, "python") if name == "all panels" else None
        note = f"processor time {np.median(cpu):.0f} ms (median); {count} ranges never seen"
        found.append(
            Figure(f"re-scope, {name}, p95, {size}", float(np.quantile(clock, 0.95)), "ms", target, note=note)
        )
    return found


def _measured(panels: dict[str, Rescope], range_ns: tuple[int, int]) -> list[tuple[float, float]]:
    """Seconds of the clock and of the processor, of each panel and of all."""
    times = []
    for panel in panels.values():
        clock, cpu = perf_counter(), process_time()
        panel(range_ns)
        times.append((perf_counter() - clock, process_time() - cpu))
    return [*times, (sum(clock for clock, _ in times), sum(cpu for _, cpu in times))]


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
                level = max((range_ns[1] - range_ns[0]).bit_length() - BUCKETS.bit_length() + 1, 0)
                first = range_ns[0] // (BUCKETS << level)
                return tiles.tiles(profile, places, TileRange(level, first, 2))

            yield {
                "selection": of(PIECES), "sums": of(results.OVERVIEW),
                "roofline": of(results.ROOFLINE, "operation"), "timeline": charged,
            }, profile.time_range_ns(), lambda: analyses.now(wanted, results.CHARGE_INDEX)  # fmt: skip
