"""Findings of the advice: gain, what was found, where, and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import html

from neuron_explorer.page import View
from neuron_explorer.steps import scope_name
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.fix.propose import EDITORS
from neuron_profile.reports.advice_text import change_text
from neuron_profile.reports.places import place as short_place
from neuron_profile.reports.quantities import duration, percent

EDIT_OF = "edit"
"""Parameter of an address: the number of the finding whose edit is shown."""

LEAST_GAIN = 0.0005  # part of the program's time below which it is not worth a figure

WHOLE_PROGRAM = "the program"

LEAST_SHARE = 0.0001  # what is less would be written as 0.00 %


def finding_list(view: View, findings: Sequence[Finding]) -> Any:
    """The findings in the given order."""
    return html.Ol(
        [
            html.Li(_finding(view, finding, number), **_selection(finding.place))
            for number, finding in enumerate(findings, 1)
        ],
        className="findings",
    )


def _selection(place: Place) -> dict[str, str]:
    """What panels show as belonging to a finding: its line, else its operation or its module."""
    if place.file:
        return {"data-select": f"line:{place.file}:{place.line}"}
    if place.operation:
        return {"data-select": f"operation:{place.operation}"}
    return {"data-select": f"module:{place.module}"} if place.module else {}


def _finding(view: View, finding: Finding, number: int) -> Any:
    words = [
        html.H3(finding.title),
        html.P(_place(view, finding.place)),
        html.P([change_text(finding), *_edit_link(view, finding, number)]),
        html.Details([html.Summary("Evidence"), html.Pre(_evidence(finding), className="evidence")]),
    ]
    return html.Div([_gain(finding, gain_of(view, finding)), html.Div(words)], className="finding card")


def _edit_link(view: View, finding: Finding, number: int) -> list[Any]:
    """A way to the edit, for rules that have an editor."""
    if finding.rule not in EDITORS.names() or not finding.place.file:
        return []
    return [" ", html.A("Show the edit", href=view.address.to("/advice", **{EDIT_OF: number}))]


def _place(view: View, place: Place) -> Any:
    if not place.file:
        return html.Span(str(place), className="faint")
    href = view.address.to("/source", file=place.file, line=place.line)
    return html.A(
        short_place(SourceLine(place.file, place.line)), href=href, title=place.module or place.file
    )


def _gain(finding: Finding, of: str) -> Any:
    """Saved time of what is shown; where it saves none while the host decides, that of the device."""
    if finding.gain_ns is None:
        return html.Div("gain not simulated", className="gain none")
    if finding.gain >= LEAST_GAIN or not finding.device_gain_ns:
        shares = [f"{_share(finding.gain)} of {of}"]
        if finding.device_gain:
            shares.append(f"{_share(finding.device_gain)} of its device time")
        saved = [html.Div(share, className="faint") for share in shares]
        return html.Div([html.Div(duration(max(0, finding.gain_ns)), className="gain"), *saved])
    gain = html.Div(duration(max(0, finding.device_gain_ns)), className="gain none")
    return html.Div([gain, html.Div("of device time, which nothing waits for now", className="faint")])


def gain_of(view: View, finding: Finding) -> str:
    """What the gain of a finding is a part of, where a view shows it."""
    return scope_name(view) if finding.gain_of == WHOLE_PROGRAM else finding.gain_of


def _share(gain: float) -> str:
    return "less than 0.01 %" if gain < LEAST_SHARE else percent(gain)


def _evidence(finding: Finding) -> str:
    lines = [f"{name} = {value}" for name, value in finding.evidence.items()]
    return "\n".join([f"rule = {finding.rule}", *lines, f"simulated = {finding.what_if or '-'}"])
