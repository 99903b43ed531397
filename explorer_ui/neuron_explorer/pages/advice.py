"""The advice: findings by falling gain, each with its line, its gain and what to change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dash import html

from neuron_explorer import results
from neuron_explorer.address import SCOPE, WHOLE
from neuron_explorer.page import Page, View
from neuron_explorer.parts.findings import finding_list
from neuron_explorer.parts.states import empty_state
from neuron_explorer.sections import section
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
    return [html.P(told, className="faint"), FINDINGS.show(view)]


@section("advice/findings", results.FINDINGS)
def FINDINGS(view: View) -> Any:
    """The list, or a sentence where nothing was found."""
    findings = view.result(results.FINDINGS)
    if not findings:
        return empty_state(f"Nothing was found that would make {scope_name(view)} faster.")
    return finding_list(view, findings)


PAGE = Page("/advice", "Advice", layout, group="What to do")
