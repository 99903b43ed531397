"""What the advice makes of each program with a planted fault: the cause, the line, the gain, the edit."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from benchmarks.faults.cases import Case, CleanCase, one_of_each, read_cases, read_clean
from benchmarks.figures import Figure, Target
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.fix.values import compare_values
from neuron_tools.frozen import frozen

Judged = TypeVar("Judged")
Verdict = TypeVar("Verdict")
GAIN_TOLERANCE = 0.1
MOST_IN_CLEAN = 0.02
"""What a finding on a clean program may promise at most."""
QUICK = ("item_append", "repeated_cast", "dma_not_overlapped", "unused_output")
"""Families of a quick run, a case of each."""
QUICK_CLEAN = ("kernel_scale",)
"""Clean families of a quick run."""


@frozen
class Score:
    """How one case was judged.

    Attributes:
        first: The first finding; None where nothing was found.
        measured_ns: What the mended twin saves.
        edited_ns: What the edit that the advice offers saves; None without one.
        edit_error: Why the edited program cannot be measured; empty where it was.
        values_equal: Whether the edited program computes the same.
        rest: What the largest finding of the mended twin that is within reach promises there, 0 to 1.
        rest_rule: Its rule.
    """

    case: Case
    first: Finding | None
    measured_ns: int
    edited_ns: int | None
    edit_error: str
    values_equal: bool
    rest: float
    rest_rule: str

    @property
    def is_right(self) -> bool:
        """Whether the first finding is the fault, at its line."""
        return (
            self.first is not None
            and self.first.rule in self.case.rules
            and self.first.place.line == self.case.line
        )

    @property
    def promised_ns(self) -> int:
        """What the first finding promises."""
        return (self.first.gain_ns or 0) if self.first is not None else 0

    @property
    def gain_error(self) -> float:
        """By how much the promise misses what the edit, or else the mended twin, saves."""
        real_ns = self.measured_ns if self.edited_ns is None else self.edited_ns
        return abs(self.promised_ns - real_ns) / abs(real_ns) if real_ns else 1.0

    @property
    def edit_holds(self) -> bool:
        """Whether the edit saves what is promised and computes the same."""
        return self.edited_ns is not None and self.values_equal and self.gain_error <= GAIN_TOLERANCE


@frozen
class CleanScore:
    """How a clean program was judged.

    Attributes:
        running_ns: Time of the program.
        worst: The largest finding that is within the user's reach; None where there is none.
    """

    case: CleanCase
    running_ns: int
    worst: Finding | None

    @property
    def is_clean(self) -> bool:
        """Whether nothing worth mentioning was found."""
        return self.worst is None or self.worst.gain <= MOST_IN_CLEAN


def score_all(cases: Iterable[Case]) -> Iterator[Score]:
    """Capture and judge each case in turn."""
    return _judged(cases, score)


def _judged(cases: Iterable[Judged], judge: Callable[[Judged, Path], Verdict]) -> Iterator[Verdict]:
    """What is found of each case, in a folder of its own that is there for so long."""
    with tempfile.TemporaryDirectory(prefix="neuron-faults-") as folder:
        for number, case in enumerate(cases):
            place = Path(folder) / f"case{number}"
            place.mkdir()
            yield judge(case, place)


def score(case: Case, folder: Path) -> Score:
    """Capture a case, its mended twin, and what the edit makes of it."""
    from benchmarks.faults.captures import capture

    faulty = capture(folder, "faulty", case.faulty)
    mended = capture(folder, "mended", case.mended)
    rest = largest(mended.findings)
    first = faulty.findings[0] if faulty.findings else None
    rule = first.rule if first is not None else ""
    edited_ns, error, equal = None, "", False
    if faulty.patch is not None:
        try:
            edited = capture(folder, "edited", faulty.patch.text)
        except Exception as failure:  # the edited program's own
            error = f"{type(failure).__name__}: {failure}"
        else:
            edited_ns = faulty.total_ns(rule) - edited.total_ns(rule)
            equal = compare_values(faulty.values, edited.values, faulty.patch.tolerance).equal
    return Score(
        case, first, faulty.total_ns(rule) - mended.total_ns(rule), edited_ns, error, equal,
        rest.gain if rest is not None else 0.0, rest.rule if rest is not None else "",
    )  # fmt: skip


def largest(findings: Iterable[Finding]) -> Finding | None:
    """The finding that promises most of those that the program can follow."""
    return max((each for each in findings if each.within_reach), key=lambda each: each.gain, default=None)


def score_all_clean(cases: Iterable[CleanCase]) -> Iterator[CleanScore]:
    """Capture and judge each clean program in turn."""
    return _judged(cases, score_clean)


def score_clean(case: CleanCase, folder: Path) -> CleanScore:
    """Capture a clean program and look at what is found all the same."""
    from benchmarks.faults.captures import capture

    captured = capture(folder, "clean", case.text)
    return CleanScore(case, captured.running_ns, largest(captured.findings))


def run(quick: bool) -> list[Figure]:
    """The figures of the scoreboard."""
    cases, clean = read_cases(), read_clean()
    if quick:
        cases = tuple(case for case in one_of_each(cases) if case.family in QUICK)
        clean = tuple(case for case in one_of_each(clean) if case.family in QUICK_CLEAN)
    return [*figures(tuple(score_all(cases))), clean_figure(tuple(score_all_clean(clean)))]


def clean_figure(scores: Sequence[CleanScore]) -> Figure:
    """How many of the clean programs are left in peace."""
    clean = sum(score.is_clean for score in scores)
    return Figure(
        "clean programs without a finding over 2 %", clean / max(len(scores), 1), "of them",
        Target(">=", 1.0), note=f"{clean} of {len(scores)}",
    )  # fmt: skip


def figures(scores: Sequence[Score]) -> Iterator[Figure]:
    """What the scores add up to; shares of the cases."""
    count = len(scores)
    right = [score for score in scores if score.is_right]
    errors = [score.gain_error for score in right] or [1.0]
    edits = [score for score in scores if score.edited_ns is not None or score.edit_error]
    yield Figure(
        "right cause and line first", len(right) / count, "of the programs", Target(">=", 0.9),
        note=f"{len(right)} of {count}",
    )  # fmt: skip
    within = sum(error <= GAIN_TOLERANCE for error in errors)
    yield Figure(
        "gain within 10 %", within / len(errors), "of those", Target(">=", 1.0),
        note=f"{within} of {len(right)}",
    )  # fmt: skip
    yield Figure("gain missed by, median", statistics.median(errors), "of the gain", Target("<=", 0.03))
    yield Figure(
        "edits offered", len(edits) / count, "of the programs", Target(">=", 0.6), note=f"{len(edits)}"
    )
    holds = sum(score.edit_holds for score in edits)
    yield Figure(
        "edits that save what is promised, with equal values", holds / max(len(edits), 1), "of those",
        Target(">=", 1.0), note=f"{holds} of {len(edits)}",
    )  # fmt: skip
    clean = sum(score.rest <= MOST_IN_CLEAN for score in scores)
    yield Figure(
        "mended programs without a finding over 2 %", clean / count, "of the programs", note=f"{clean}"
    )
