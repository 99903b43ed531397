"""The advice: findings by falling gain, each with its line, its gain and what to change."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from dash import dcc, html

from neuron_explorer.content import Content
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.reports.places import place as short_place
from neuron_profile.reports.quantities import duration, percent

INTRODUCTION = (
    "Each gain is simulated: the program runs again on the model of the chip without the cause. "
    "It is the time that the whole program would save, host included."
)


def advice_page(content: Content) -> list[Any]:
    """Components of the page."""
    if not content.findings:
        return [html.P("Nothing was found that would make the program faster.")]
    return [
        html.P(INTRODUCTION),
        html.Ol([_finding(finding) for finding in content.findings], className="findings"),
    ]


def _finding(finding: Finding) -> Any:
    return html.Li(
        [
            html.H2(finding.title),
            html.P([_place(finding.place), html.Span(_gain(finding), className="gain")]),
            html.P(finding.change),
            html.Details([html.Summary("Evidence"), html.Pre(_evidence(finding))]),
        ]
    )


def _place(place: Place) -> Any:
    if not place.file:
        return html.Span(str(place))
    target = f"/source?{urlencode({'file': place.file})}"
    return dcc.Link(short_place(SourceLine(place.file, place.line)), href=target, title=place.module)


def _gain(finding: Finding) -> str:
    if finding.gain_ns is None:
        return "gain not simulated"
    return f"saves {duration(max(0, finding.gain_ns))} ({percent(finding.gain)})"


def _evidence(finding: Finding) -> str:
    lines = [f"{name} = {value}" for name, value in finding.evidence.items()]
    return "\n".join([f"rule = {finding.rule}", *lines, f"simulated = {finding.what_if or '-'}"])
