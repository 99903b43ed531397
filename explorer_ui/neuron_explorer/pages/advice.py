"""The advice: findings by falling gain, each with its line, its gain and what to change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dash import html

from neuron_explorer import results
from neuron_explorer.address import SCOPE, WHOLE
from neuron_explorer.page import Page, View
from neuron_explorer.parts.card import card
from neuron_explorer.parts.findings import EDIT_OF, finding_list
from neuron_explorer.parts.states import empty_state
from neuron_explorer.sections import Section, section
from neuron_explorer.steps import scope_name

INTRODUCTION = (
    "Each gain is simulated: the program runs again on the model of the chip without the cause. "
    "The gain is the time by which {scope} would be shorter, host included."
)


def layout(view: View) -> list[Any]:
    """Components of the page."""
    told: list[Any] = [INTRODUCTION.format(scope=scope_name(view))]
    if view.range_ns is not None:
        whole = replace(view.address, start_ns=None, end_ns=None).to(**{SCOPE: WHOLE})
        told += [" ", html.A("Advice for the whole program", href=whole)]
    edit = [EDIT.show(view)] if view.address.get(EDIT_OF) else []
    return [html.P(told, className="faint"), *edit, FINDINGS.show(view)]


def _draw_edit(view: View) -> Any:
    """The edit of the finding that the address names, as a diff, and how to measure it."""
    number = view.address.get(EDIT_OF)
    proposal = view.result(results.EDIT, number)
    words = [
        html.P(proposal.finding.title),
        html.Pre(proposal.diff(proposal.path.name), className="evidence"),
    ]
    if view.range_ns is None:  # the command numbers the findings of the whole program
        measure = f"neuron-profile fix {view.profile.path.name} --finding {number}"
        words.append(
            html.P(["Measure it, with its values compared: ", html.Code(measure)], className="faint")
        )
    close = html.A("Close", href=view.address.to(**{EDIT_OF: None}))
    return card(proposal.edit.title, html.Div(words), actions=[close])


EDIT = Section("advice/edit", lambda view: [(results.EDIT, view.address.get(EDIT_OF))], _draw_edit)


@section("advice/findings", results.FINDINGS)
def FINDINGS(view: View) -> Any:
    """The list, or a sentence where nothing was found."""
    findings = view.result(results.FINDINGS)
    if not findings:
        return empty_state(f"Nothing was found that would make {scope_name(view)} faster.")
    return finding_list(view, findings)


PAGE = Page("/advice", "Advice", layout, group="What to do")
