"""`python -m benchmarks.faults.report FILE.md`: every case of the scoreboard, as a page."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from benchmarks.faults.cases import Case, read_cases, read_clean
from benchmarks.faults.scoreboard import (
    CleanScore,
    Score,
    clean_figure,
    figures,
    score_all,
    score_all_clean,
)
from neuron_profile.reports.quantities import duration, percent

HEADING = (
    "| program | first finding | right | promised | mended | edited | values |\n|---|---|---|---|---|---|---|"
)
CLEAN_HEADING = "| program | time | largest finding within reach |\n|---|---|---|"


def row(score: Score) -> str:
    """A case as a row of a Markdown table."""
    first = score.first
    told = f"`{first.rule}`, line {first.place.line}" if first is not None else "none"
    edited = "" if score.edited_ns is None else duration(score.edited_ns)
    cells = (
        score.case.name.partition("(")[2].rstrip(")"), told, "yes" if score.is_right else "**no**",
        duration(score.promised_ns), duration(score.measured_ns), (score.edit_error and "fails") or edited,
        ("equal" if score.values_equal else "differ") if edited else "",
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def clean_row(score: CleanScore) -> str:
    """A clean program as a row of a Markdown table."""
    worst = score.worst
    told = f"`{worst.rule}`, line {worst.place.line}: {percent(worst.gain)}" if worst is not None else "none"
    return (
        f"| {score.case.name} | {duration(score.running_ns)} | {told if score.is_clean else f'**{told}**'} |"
    )


def page(scores: Sequence[Score], clean: Sequence[CleanScore]) -> str:
    """The whole scoreboard as Markdown."""
    lines = ["| figure | value | asked |", "|---|---|---|"]
    for figure in (*(figures(scores) if scores else ()), *((clean_figure(clean),) if clean else ())):
        note = f" ({figure.note})" if figure.note else ""
        lines.append(f"| {figure.name} | {percent(figure.value)}{note} | {figure.target or ''} |")
    for family, group in groupby(scores, key=lambda score: score.case.family):
        members = list(group)
        lines += ["", f"## {family}", "", _about(members[0].case), "", HEADING, *map(row, members)]
    if clean:
        lines += ["", "## Clean programs", "", CLEAN_HEADING, *map(clean_row, clean)]
    return "\n".join(lines) + "\n"


def _about(case: Case) -> str:
    """What the program's docstring says."""
    return case.faulty.split('"""')[1].strip().replace("\n", " ")


def print_progress(scores: Iterable[Score]) -> Iterable[Score]:
    """A line for each case as it is judged."""
    for score in scores:
        print(
            "ok " if score.is_right else "BAD", f"{score.gain_error:7.1%}", score.case.name, row(score),
            f"twin {score.rest:.1%} {score.rest_rule}", score.edit_error, flush=True,
        )  # fmt: skip
        yield score


def print_clean(scores: Iterable[CleanScore]) -> Iterable[CleanScore]:
    """A line for each clean program as it is judged."""
    for score in scores:
        print("ok " if score.is_clean else "BAD", clean_row(score), flush=True)
        yield score


def main(arguments: Sequence[str]) -> None:
    """Score all cases and clean programs, or those of the families named, and write the page."""
    output, *families = arguments
    cases = [case for case in read_cases() if not families or case.family in families]
    clean = [case for case in read_clean() if not families or case.family in families]
    scores = list(print_progress(score_all(cases)))
    Path(output).write_text(page(scores, list(print_clean(score_all_clean(clean)))))


if __name__ == "__main__":
    main(sys.argv[1:])
