"""Diff: what got slower or faster between two profiles, and because of what; several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from dash import html

from neuron_explorer.analyses import analysis
from neuron_explorer.compared import BASE, COMPARE, names_of, other_profiles
from neuron_explorer.figures.difference import difference_figure
from neuron_explorer.library import ProfileEntry
from neuron_explorer.page import Page, View
from neuron_explorer.pages.diff_many import draw_many
from neuron_explorer.parts.chart import chart_card
from neuron_explorer.parts.quantities import Cell, time_cell
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.table import table_card
from neuron_explorer.sections import Need, Section
from neuron_profile.analysis.comparison.difference import Delta, Difference, compare
from neuron_profile.reports.difference_text import reason_text, signed
from neuron_tools.profile.reader import Profile

DIFFERENCE = "difference"
ROWS, LINE_ROWS, BARS = 250, 60, 20
LINE_HEADINGS = ("Line", "Base", "New", "Change", "Text")
HEADINGS = ("Module", "Operation", "Base", "New", "Change", "Because of", "Line")


def layout(view: View) -> list[Any]:
    """Components of the page; `base` in the address names what the profile is compared with, with commas
    between several."""
    others = [entry for entry in view.library.entries() if entry.id != view.address.profile]
    if not others:
        return [
            empty_state(
                "There is only one profile here.",
                "Open a second one: neuron-explorer base.nprof new.nprof, or import it on the page Profiles.",
            )
        ]
    bases = other_profiles(view)
    if not bases:
        return [_choice(view, others, bases), empty_state("Choose the profile to compare with.")]
    beside = view.address.to("/timeline", **{COMPARE: ",".join(bases)})
    told = "Both on the timeline" if len(bases) == 1 else "All on the timeline"
    shown = html.A(told, href=beside, className="button spread")
    return [html.Div([_choice(view, others, bases), shown], className="bar"), CHANGES.show(view)]


def _choice(view: View, others: Sequence[ProfileEntry], bases: Sequence[str]) -> Any:
    links = [part for entry in others for part in _choices(view, entry, bases)]
    label = html.Span("Compared with", className="choices-label")
    return html.Nav([label, *links], className="choices", **{"aria-label": "Profile to compare with"})


def _choices(view: View, entry: ProfileEntry, bases: Sequence[str]) -> list[Any]:
    """A link that compares with one profile alone, and one that adds it to the others, or leaves it out."""
    is_chosen = entry.id in bases
    marks = {"aria-current": "true"} if is_chosen else {}
    alone = html.A(
        entry.name,
        href=view.address.to(**{BASE: entry.id}),
        className="choice",
        title=entry.location,
        **marks,
    )
    rest = [one for one in bases if one != entry.id]
    if not rest:
        return [alone]
    told = f"Leave out {entry.name}" if is_chosen else f"Compare with {entry.name} too"
    changed = view.address.to(**{BASE: ",".join(rest if is_chosen else [*rest, entry.id])})
    sign = html.A(
        "−" if is_chosen else "+", href=changed, className="choice", title=told, **{"aria-label": told}
    )
    return [alone, sign]


@analysis(
    DIFFERENCE, "Aligning the two profiles by their hierarchy", of_profiles=True, of_whole=True, is_heavy=True
)
def difference(profile: Profile, base: Profile) -> Difference:
    """What differs between a base profile and this one."""
    return compare(base, profile)


def _needs(view: View) -> Sequence[Need]:
    return [(DIFFERENCE, base) for base in other_profiles(view)]


def _draw(view: View) -> Any:
    bases = other_profiles(view)
    if len(bases) > 1:
        named = {name: view.result(DIFFERENCE, base) for base, name in names_of(view, bases).items()}
        return draw_many(view, named, partial(_line_cell, view))
    found: Difference = view.result(DIFFERENCE, bases[0])
    changed = [delta for delta in found.deltas if delta.delta_ns]
    parts = [_totals(found)]
    if not changed:
        return [*parts, empty_state("No operation takes more or less time.")]
    return [
        *parts,
        chart_card(
            "What changed most",
            difference_figure(changed[:BARS], view.theme),
            explains="Device time in the new profile less that in the base; all changes add up to the total.",
        ),
        *_lines(view, found),
        table_card(
            "Operations that changed",
            HEADINGS,
            [_row(view, delta) for delta in changed[:ROWS]],
            name="difference",
        ),
    ]


CHANGES = Section("diff/changes", _needs, _draw)


def _lines(view: View, found: Difference) -> list[Any]:
    """The lines of the user's own code that changed."""
    rows = [
        (
            _line_cell(view, line.place.file, line.place.line),
            time_cell(line.base_ns),
            time_cell(line.new_ns),
            _change(line.delta_ns, line.base_ns),
            Cell(line.text, is_code=True),
        )
        for line in found.lines[:LINE_ROWS]
    ]
    return [table_card("Lines that changed", LINE_HEADINGS, rows, name="lines", short=True)] if rows else []


def _line_cell(view: View, file: str, line: int, more: str = "") -> Cell:
    if not file:
        return Cell("")
    short = f"{file.rpartition('/')[2]}:{line}"
    return Cell(short, href=view.address.to("/source", file=file, line=line), title=f"{file}{more}")


def _totals(found: Difference) -> Any:
    numbers = (
        ("Device time", found.base_device_ns, found.new_device_ns),
        ("Idle between executions", found.base_idle_ns, found.new_idle_ns),
        ("Together", found.base_total_ns, found.new_total_ns),
    )
    rows = [(name, time_cell(old), time_cell(new), _change(new - old, old)) for name, old, new in numbers]
    return table_card("Totals", ("", "Base", "New", "Change"), rows)


def _change(delta_ns: int, base_ns: int) -> Cell:
    relative = f" ({100 * delta_ns / base_ns:+.1f} %)" if base_ns else ""
    style = "slower" if delta_ns > 0 else "faster" if delta_ns < 0 else ""
    return Cell(signed(delta_ns) + relative, delta_ns, True, style=style)


def _row(view: View, delta: Delta) -> list[Any]:
    key = delta.key
    library = f", inside {delta.library_file}:{delta.library_line}" if delta.library_file else ""
    line = _line_cell(view, delta.file, delta.line, library)
    because = "; ".join(reason_text(reason) for reason in delta.reasons[:2]) or delta.change
    direction = " (backward)" if key.backward else ""
    operation = Cell(key.operation + direction, select=f"operation:{key.operation}")
    operation = Cell(key.operation + direction, select=f"operation:{key.operation}")
    return [
        key.module or "-", operation, time_cell(delta.base_ns), time_cell(delta.new_ns),
        _change(delta.delta_ns, delta.base_ns), because, line,
    ]  # fmt: skip


PAGE = Page("/diff", "Diff", layout, group="What to do", follows_range=False)
