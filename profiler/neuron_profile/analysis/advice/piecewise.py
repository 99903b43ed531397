"""What a line launches piece by piece, run by run, and what launching the pieces together gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.advice.fused_times import joined_gain_ns
from neuron_profile.analysis.advice.line_calls import Call, PlacedCall, spans_of
from neuron_profile.analysis.loop_patterns import LoopPatterns, loop_patterns
from neuron_profile.reports.quantities import count
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen

MINIMUM_SHARE = 0.01
LONGEST_PIECE = 64
"""Launches for one parameter or row."""


@frozen
class Pieces:
    """Runs of equal pieces that one line launched.

    Attributes:
        superfluous: The calls that one launch for all pieces of a run does not need.
        pieces: How many there were in all runs.
        runs: How often they were launched.
    """

    place: Place
    superfluous: Sequence[Call]
    pieces: int
    runs: int


class Patterns:
    """The patterns of each file of a profile, read once."""

    def __init__(self, context: Context) -> None:
        self.of = cache(lambda file: _patterns(context, file))


def _patterns(context: Context, file: str) -> LoopPatterns:
    return loop_patterns(context.texts.lines(file)) if file else LoopPatterns()


def pieces_of(runs: Iterator[list[PlacedCall]], least: int) -> dict[tuple[str, int], Pieces]:
    """By file and line: what repeats itself at least so often at the end of a run, but for the first piece.

    At the beginning may stand what is done once, as making an optimizer's state in the first step.
    """
    found: dict[tuple[str, int], Pieces] = {}
    for run in runs:
        times, length = repeated_end([placed.call.name for placed in run])
        if times < least:
            continue
        run = run[len(run) - times * length :]
        ((file, line), _) = Counter((placed.file, placed.line) for placed in run).most_common(1)[0]
        rest = [placed.call for placed in run[length:]]
        known = found.get((file, line), Pieces(Place(file, line), (), 0, 0))
        found[file, line] = Pieces(
            known.place, [*known.superfluous, *rest], known.pieces + times, known.runs + 1
        )
    return found


def repeated_end(names: Sequence[str]) -> tuple[int, int]:
    """How often the piece that covers most of the end stands there, and its length; the shortest of such."""
    best = 1, len(names)
    for length in range(1, min(len(names) // 2, LONGEST_PIECE) + 1):
        piece, times = names[-length:], 1
        while names[len(names) - (times + 1) * length : len(names) - times * length] == piece:
            times += 1
        if times > 1 and (best[0] == 1 or times * length > best[0] * best[1]):
            best = times, length
    return best


def without(
    context: Context, rule: str, title: str, change: str, pieces: Pieces, more: Sequence[Call] = ()
) -> Iterator[Finding]:
    """The finding that pieces could be launched together.

    Args:
        title: With `{pieces}` and `{runs}`.
        more: Other calls that are not needed then.
    """
    what_if = context.what_if
    if what_if is None:
        return
    total_ns = what_if.recorded_ns()
    gain_ns = total_ns - what_if.without_spans_ns(spans_of([*pieces.superfluous, *more]))
    if gain_ns >= MINIMUM_SHARE * total_ns:
        yield Finding(
            rule,
            title.format(pieces=f"{pieces.pieces:,}", runs=pieces.runs),
            change,
            pieces.place,
            gain_ns=gain_ns,
            total_ns=total_ns,
            evidence={"pieces": pieces.pieces, "runs": pieces.runs, "calls": len(pieces.superfluous)},
        )


def joined_findings(
    context: Context,
    found: Mapping[tuple[str, int], Sequence[Sequence[PlacedCall]]],
    rule: str,
    title: str,
    change: str,
    durations_ns: Callable[[Context, Sequence[Sequence[Call]]], Ints],
    once_ns: Mapping[tuple[str, int], int] = MappingProxyType({}),
) -> Iterator[Finding]:
    """A finding per line that launches one by one what one launch would do.

    Args:
        found: By file and line: the calls of each run.
        title: With `{times}` and `{operators}`.
        durations_ns: (executions,) device times where each of the groups of calls is one launch.
        once_ns: By file and line: what the change costs the host once.
    """
    if context.what_if is None:
        return
    total_ns = context.what_if.recorded_ns()
    for (file, line), runs in found.items():
        groups = [[placed.call for placed in run] for run in runs]
        gain_ns = joined_gain_ns(context, groups, durations_ns(context, groups))
        gain_ns -= once_ns.get((file, line), 0)
        if gain_ns >= MINIMUM_SHARE * total_ns:
            counts = {"times": len(runs), "operators": len(runs[0])}
            told = title.format(**counts | {"times": count(len(runs), "time")})
            yield Finding(
                rule, told, change, Place(file, line), gain_ns=gain_ns, total_ns=total_ns, evidence=counts
            )  # fmt: skip
