"""The strip of steps above every page: choosing one makes every page show that step."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from dash import html

from neuron_explorer import results
from neuron_explorer.address import SCOPE, WHOLE, Address
from neuron_explorer.analyses import Analyses
from neuron_profile.analysis.time.steps import COMPILING, SLOW, STEADY, WARM_UP, Step, Steps
from neuron_profile.reports.quantities import count, duration
from neuron_tools.errors import NeuronToolsError

MOST_CELLS = 24
"""Steps that are shown; of more, those around the chosen one."""
PREPARED_ROWS = 1 << 18
"""Rows of a profile from which on its ranges are prepared: of fewer, each is summed up in a moment anyway."""
_KINDS = {COMPILING: "compiles", WARM_UP: "warms up", SLOW: "slow", STEADY: "steady"}


def opening_address(address: Address, analyses: Analyses) -> Address:
    """The address with the range of a typical step where it asks for neither a range nor for everything."""
    if not address.profile or address.start_ns is not None or address.get(SCOPE) == WHOLE:
        return address
    steps = _steps(address, analyses)
    if steps is None or steps.typical is None:
        return address
    return replace(address, start_ns=steps.typical.begin_ns, end_ns=steps.typical.end_ns)


def prepare_ranges(address: Address, analyses: Analyses) -> None:
    """Begin to sum up a large profile once, in the background, where a range of it is shown: then every other
    range of it is summed up in a moment, however long.
    """
    if address.start_ns is None or not address.profile:
        return
    with suppress(NeuronToolsError):
        profile = analyses.part(address.profile, None)
        if profile.complete and sum(profile.tables().values()) >= PREPARED_ROWS:
            analyses.job(address.profile, results.CHARGE_INDEX)


def step_strip(address: Address, analyses: Analyses, is_always_whole: bool = False) -> Any:
    """The steps as links, the chosen one marked; nothing where a profile has none.

    Args:
        is_always_whole: Whether the figures of the page are of the whole profile, whichever step is chosen.
    """
    steps = _steps(address, analyses) if address.profile else None
    if steps is None or not steps.steps:
        return []
    chosen = chosen_step(address, steps)
    shown = _around(steps.steps, chosen)
    left = len(steps.steps) - len(shown)
    whole = _whole(address)
    marks = {"aria-current": "true"} if address.start_ns is None else {}
    cells = [html.A("All", href=whole, className="step all", title="All of the profile", **marks)]
    longest = (
        max(step.duration_ns for step in shown if step.kind == STEADY or len(shown) == 1)
        if any(step.kind == STEADY for step in shown)
        else max(step.duration_ns for step in shown)
    )
    cells += [_cell(address, step, step == chosen, longest) for step in shown]
    more = [html.Span(f"{left} more", className="note")] if left else []
    return [
        html.Div([html.B("Steps"), html.Span(_kinds(steps), className="note")], className="steps-title"),
        html.Div([*cells, *more], className="steps-cells"),
        html.Div(
            _ALWAYS_WHOLE if is_always_whole else _scope_text(address, steps, chosen),
            className="steps-scope",
            **{"data-start-ns": address.start_ns, "data-end-ns": address.end_ns},
        ),
    ]


def chosen_step(address: Address, steps: Steps) -> Step | None:
    """The step whose range the address has."""
    here = (address.start_ns, address.end_ns)
    return next((step for step in steps.steps if (step.begin_ns, step.end_ns) == here), None)


def scope_name(view: Any) -> str:
    """What the figures of a view are of, as the end of a sentence: "step 7", "the range", "the program"."""
    if view.address.start_ns is None:
        return "the program"
    steps = _steps(view.address, view.analyses)
    step = chosen_step(view.address, steps) if steps is not None else None
    return f"step {step.number}" if step is not None else "the range"


def opening_ns(address: Address, analyses: Analyses) -> tuple[int, int] | None:
    """What of a profile is looked at first; None where that is not known."""
    steps = _steps(address, analyses)
    return steps.opening_ns if steps is not None else None


def typical_step(profile: str, analyses: Analyses) -> Step | None:
    """The step of a profile that it opens with; None where it has none."""
    steps = _steps(Address(profile=profile), analyses)
    return steps.typical if steps is not None else None


def step_of(address: Address, analyses: Analyses) -> Step | None:
    """The step that an address shows, else the typical one; None where the profile has none."""
    steps = _steps(address, analyses)
    return None if steps is None else chosen_step(address, steps) or steps.typical


def _steps(address: Address, analyses: Analyses) -> Steps | None:
    try:
        found: Steps = analyses.now(address.profile, results.STEPS)
    except NeuronToolsError:
        return None
    return found


def _around(steps: tuple[Step, ...], chosen: Step | None) -> tuple[Step, ...]:
    middle = chosen.number - 1 if chosen else 0
    first = max(0, min(middle - MOST_CELLS // 2, len(steps) - MOST_CELLS))
    return steps[first : first + MOST_CELLS]


def _cell(address: Address, step: Step, is_chosen: bool, longest_ns: int) -> Any:
    here = replace(address, start_ns=step.begin_ns, end_ns=step.end_ns)
    marks = {"aria-current": "true"} if is_chosen else {}
    title = f"{step.name}: {duration(step.duration_ns)}, {_KINDS[step.kind]}"
    return html.A(
        [html.B(str(step.number)), f" {duration(step.duration_ns)}"],
        href=here.to(**{SCOPE: None}),
        className=f"step {step.kind}",
        title=title,
        style={"flexGrow": round(min(1.0, step.duration_ns / longest_ns), 3)},
        **marks,
    )


def _whole(address: Address) -> str:
    return replace(address, start_ns=None, end_ns=None).to(**{SCOPE: WHOLE})


def _kinds(steps: Steps) -> str:
    counts = {
        kind: sum(step.kind == kind for step in steps.steps) for kind in (STEADY, SLOW, WARM_UP, COMPILING)
    }
    return ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)


_ALWAYS_WHOLE = [html.B("all of the profile"), html.Span("whichever step is chosen", className="note")]


def _scope_text(address: Address, steps: Steps, chosen: Step | None) -> list[Any]:
    """What all figures of the page are of."""
    if chosen is not None:
        kind = "typical" if chosen == steps.typical else chosen.kind
        of = f"step {chosen.number} of {len(steps.steps)} · {duration(chosen.duration_ns)}"
        return [html.B(of), html.Span(f"figures are of this {kind} step", className="note")]
    if address.start_ns is not None and address.end_ns is not None:
        inside = [
            step for step in steps.steps if step.begin_ns < address.end_ns and step.end_ns > address.start_ns
        ]
        length = duration(address.end_ns - address.start_ns)
        return [html.B(length), html.Span(f"a range in {count(len(inside), 'step')}", className="note")]
    return [html.B("all of the profile"), html.Span("with start-up and compiling", className="note")]
