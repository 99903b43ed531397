"""Charges the time of one NeuronCore, stretch by stretch; of long ranges only what lies at their edges.

A profile is taken in stretches of time, each with at most about `STRETCH_ROWS` spans, so that memory does not
grow with its length. A span that reaches beyond its stretch is cut there, and its rest goes to the next one.
What a moment is charged to depends on that moment alone. So the sums from the profile's start to each of many
edges (`ChargeIndex`) tell those of any range: the difference of two, and what lies beyond the outermost edges
in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from neuron_profile.analysis.time.core_spans import CORE, EARLIEST, LATEST, CoreSpans, Owned
from neuron_profile.analysis.time.core_window import core_window
from neuron_profile.analysis.time.numbering import Numbering, Sums
from neuron_profile.analysis.time.repeats import count_instructions, find_repeats
from neuron_profile.analysis.time.stretches import cut_times
from neuron_tools.arrays import Floats, Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.exposure import OrderedSpans, Spans, exposed_ns
from neuron_tools.profile.reader import Profile

Core = tuple[int, int]
STRETCH_ROWS = 1 << 18
INDEXED_ROWS = 1 << 15
"""Instructions between two edges of an index: those at the ends of a range are charged in a moment."""
READ_ROWS = 1 << 18
"""Instructions that are read at once for it: a query costs as much as reading some 100,000 rows."""
MOST_SUMS = 1 << 23
"""Numbers in an index of a NeuronCore: 64 MiB."""
COMPILED_FROM = 1 << 17  # spans: below it, loading the compiled kernel takes longer than it saves
TIERS = 6
_WHOLE = [EARLIEST, LATEST]
_SPAN_TABLES = ("Instruction", "DmaPacketAggregated", "FrameworkInstruction")
_STARTS = " UNION ALL ".join(
    f"SELECT start_ts FROM {table} WHERE {CORE.format(core='pcore_idx')}" for table in _SPAN_TABLES
)


@frozen
class ChargeIndex:
    """What a NeuronCore's time until each of some edges is charged to.

    Attributes:
        edges: Moments in ns, ascending, (edges,).
        until: Charged ns from the profile's start to each edge, in the order of `Sums.joined`,
            (edges, sums).
    """

    edges: Ints
    until: Floats

    def within(self, range_ns: tuple[int, int]) -> tuple[int, int]:
        """The first and the last edge in a range; the last is before the first where there is none."""
        first = int(np.searchsorted(self.edges, range_ns[0]))
        return first, int(np.searchsorted(self.edges, range_ns[1], "right")) - 1


def charge_core(profile: Profile, core: Core, to: Numbering, sums: Sums) -> None:
    """Add what one NeuronCore's time is charged to; its operations are held in memory.

    Args:
        profile: The whole profile, or the range whose time is charged.
        core: (process_idx, number).
    """
    whole = _held_spans(profile.whole, core)
    index: ChargeIndex | None = profile.whole.known(_index_key(core, to))
    if profile.range_ns is not None and index is not None:
        _add_indexed(profile, whole, core, index, to, sums)
        return
    for tiers, times in core_parts(profile, whole, core):
        once = Sums.empty(to)
        expose(tiers, to, once)
        sums.add(once, times)


def _held_spans(held: Profile, core: Core) -> CoreSpans:
    return held.kept(("core spans", core), lambda: CoreSpans.of(held, core))


def core_parts(profile: Profile, whole: CoreSpans | None, core: Core) -> Iterator[tuple[list[Owned], int]]:
    """The spans of a NeuronCore, part by part, and how often each part runs.

    Args:
        whole: What of the profile is held; None to read operations and executions part by part too.
    """
    repeats = find_repeats(profile, core)
    if repeats is None:
        for stretch in _stretches(profile, whole, core, _edges(profile, core, STRETCH_ROWS)):
            yield stretch, 1
        return
    for repeat in repeats:
        here = _starting_in(profile, whole, core, repeat.begin_ns, repeat.end_ns)
        yield [tier.cut(repeat.begin_ns, repeat.end_ns) for tier in here], repeat.count


def index_core(held: Profile, core: Core, to: Numbering) -> ChargeIndex:
    """The index of a NeuronCore, computed when it is first asked for; from then on `charge_core` uses it.

    Args:
        held: The whole profile.
    """
    return held.kept(_index_key(core, to), lambda: _made_index(held, core, to))


def _index_key(core: Core, to: Numbering) -> tuple[str, Core, str]:
    return "charge index", core, to.opcodes.column


def _made_index(held: Profile, core: Core, to: Numbering) -> ChargeIndex:
    whole, sums = _held_spans(held, core), Sums.empty(to)
    rows = max(INDEXED_ROWS, -(-count_instructions(held, core) * len(sums.joined) // MOST_SUMS))
    edges = _edges(held, core, rows)
    until = np.zeros((len(edges) - 2, len(sums.joined)))
    for place, stretch in enumerate(_stretches(held, whole, core, edges, max(1, READ_ROWS // rows))):
        expose(stretch, to, sums)
        if place < len(until):
            until[place] = sums.joined
    return ChargeIndex(np.array(edges[1:-1], np.int64), until)


def _add_indexed(
    profile: Profile, whole: CoreSpans, core: Core, index: ChargeIndex, to: Numbering, sums: Sums
) -> None:
    """Add the difference of two edges, and what lies outside of them."""
    begin, end = profile.range_ns or (EARLIEST, LATEST)
    first, last = index.within((begin, end))
    if last <= first:
        if not _add_held(profile.whole, core, (begin, end), to, sums):
            _add_all(profile, whole, core, to, sums, _WHOLE)
        return
    sums.joined += index.until[last] - index.until[first]
    for low, high in ((begin, int(index.edges[first])), (int(index.edges[last]), end)):
        if low < high:
            _add_all(profile.slice(low, high), whole, core, to, sums, _WHOLE)


def _add_held(held: Profile, core: Core, range_ns: tuple[int, int], to: Numbering, sums: Sums) -> bool:
    """Add a range whose spans the timeline or another panel may have read; False where it has too many."""
    found = core_window(held, core).aligned(*range_ns)
    if found is not None:
        expose([tier.cut(*range_ns) for tier in found.tiers], to, sums)
    return found is not None


def _add_all(
    profile: Profile, whole: CoreSpans, core: Core, to: Numbering, sums: Sums, edges: list[int]
) -> None:
    for stretch in _stretches(profile, whole, core, edges):
        expose(stretch, to, sums)


def _stretches(
    profile: Profile, whole: CoreSpans | None, core: Core, edges: list[int], at_once: int = 1
) -> Iterator[list[Owned]]:
    """All tiers' spans between each two edges, cut to them and to the profile's range.

    Args:
        at_once: How many stretches are read together.
    """
    low, high = profile.range_ns or (EARLIEST, LATEST)
    rest: list[Owned] = []
    for begin, end, here in _starting(profile, whole, core, edges, at_once):
        spans = [_joined(kept, new) for kept, new in zip(rest, here)] if rest else here
        yield [tier.cut(max(begin, low), min(end, high)) for tier in spans]
        rest = [tier.chosen(tier.spans.end_ns > end) for tier in spans]


def _starting(
    profile: Profile, whole: CoreSpans | None, core: Core, edges: list[int], at_once: int
) -> Iterator[tuple[int, int, list[Owned]]]:
    """Each two edges and the spans that start between them."""
    for first in range(0, len(edges) - 1, at_once):
        near = edges[first : first + at_once + 1]
        tiers = _starting_in(profile, whole, core, near[0], near[-1])
        for begin, end in pairwise(near):
            yield begin, end, [tier.starting(begin, end) for tier in tiers]


def _starting_in(profile: Profile, whole: CoreSpans | None, core: Core, begin: int, end: int) -> list[Owned]:
    """All tiers' spans that start in a stretch."""
    spans = CoreSpans.of(profile, core, begin, end) if whole is None else whole
    return spans.starting(profile, core, begin, end)


def _edges(profile: Profile, core: Core, most_rows: int) -> list[int]:
    """Times that divide a NeuronCore's spans into stretches; the last holds all that follows."""
    if sum(profile.tables().get(table, 0) for table in _SPAN_TABLES) <= most_rows:
        return _WHOLE
    return [EARLIEST, *cut_times(profile, _STARTS, core * len(_SPAN_TABLES), most_rows), LATEST]


def _joined(one: Owned, other: Owned) -> Owned:
    if not len(one):
        return other
    return Owned(
        Spans(
            np.concatenate([one.spans.start_ns, other.spans.start_ns]),
            np.concatenate([one.spans.end_ns, other.spans.end_ns]),
        ),
        np.concatenate([one.owner, other.owner]),
        np.concatenate([one.hlo, other.hlo]),
        np.concatenate([one.engine, other.engine]),
    )


def expose(tiers: list[Owned], to: Numbering, sums: Sums) -> None:
    """Add the exposed time of one stretch's spans."""
    owner, hlo, engine = (
        np.concatenate([getattr(tier, name) for tier in tiers]) for name in ("owner", "hlo", "engine")
    )
    times = _exposed(tiers)
    for total, places in (
        (sums.origin, to.origins.of_owners(owner, hlo)),
        (sums.opcode, to.opcodes.of_hlo(hlo)),
        (sums.engine, engine),
    ):
        total += np.bincount(places, weights=times, minlength=len(total))


def _exposed(tiers: list[Owned]) -> Floats:
    """Exposed ns of each span of all tiers."""
    if sum(map(len, tiers)) < COMPILED_FROM:
        return np.concatenate(exposed_ns([tier.spans for tier in tiers]))
    from neuron_profile.analysis.time.exposure_kernel import add_exposed

    spans = OrderedSpans.of([tier.spans for tier in tiers])
    exposed = np.zeros(len(spans.tier))
    add_exposed(
        spans.start_ns, spans.end_ns, spans.tier, np.arange(len(exposed)), spans.by_start, spans.by_end,
        spans.tiers, exposed,
    )  # fmt: skip
    return exposed
