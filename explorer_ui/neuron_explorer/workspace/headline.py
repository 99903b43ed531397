"""The sentence above the panels: a finding's cause, line and gain, and the way to the next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import html

from neuron_explorer import results
from neuron_explorer.page import View
from neuron_explorer.pages.overview import finding_sentence
from neuron_explorer.parts.findings import gain_of
from neuron_explorer.sections import section
from neuron_profile.analysis.advice.finding import Finding

FINDING = "finding"
"""Parameter of the address: number of the finding that is told, from 1."""


@section("workspace/headline", results.FINDINGS)
def HEADLINE(view: View) -> Any:
    """The asked finding; the one with the largest gain where none is asked for."""
    findings = [finding for finding in view.result(results.FINDINGS) if (finding.gain_ns or 0) > 0]
    if not findings:
        return html.Div(
            html.P("Nothing was found whose change would save time in what is shown."), className="headline"
        )
    number = _asked(view, len(findings))
    finding = findings[number - 1]
    told = finding_sentence(view, finding, gain_of(view, finding))
    advice = html.A("What to change", href=view.address.to("/advice"), className="button primary")
    badge = html.Span(str(number), className="ws-badge", **{"aria-hidden": "true"})
    return html.Div(
        [badge, html.P(told, title=finding.change), *_next(view, findings, number), advice],
        className="headline",
    )


def _asked(view: View, count: int) -> int:
    text = view.address.get(FINDING)
    return min(max(int(text), 1), count) if text.isascii() and text.isdigit() and len(text) < 6 else 1


def _next(view: View, findings: Sequence[Finding], number: int) -> list[Any]:
    if len(findings) == 1:
        return []
    following = number % len(findings) + 1
    label = f"Finding {number} of {len(findings)}: show the next"
    return [
        html.A(
            f"{number} of {len(findings)} ›",
            href=view.address.to(**{FINDING: str(following)}),
            className="button",
            **{"aria-label": label},
        )
    ]
