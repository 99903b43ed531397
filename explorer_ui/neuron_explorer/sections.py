"""Parts of a page that wait for analyses: drawn at once where those are done, else when they are.

Until then a section says what is computed and for how long, and has a button that cancels it. What it answers
to the browser's questions costs nothing, so a page opens in milliseconds on a profile of any size.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

from dash import MATCH, Dash, Input, Output, State, ctx, dcc, html, no_update

from neuron_explorer.address import Address
from neuron_explorer.jobs import CancelledError, Job
from neuron_explorer.page import Site, View
from neuron_explorer.parts.states import error_state, loading_state
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen

PATIENCE_S = 0.25
"""How long an answer waits for analyses: most profiles are done by then and need no second request."""
TICK_MS = 350
BODY, TICK, CANCEL, RETRY = "section-body", "section-tick", "section-cancel", "section-retry"

Need = tuple[str, ...]  # name of an analysis, and its arguments
_SECTIONS: dict[str, Section] = {}


@frozen
class Section:
    """A part of a page.

    Attributes:
        name: Unique among all pages.
        needs: The analyses whose results it draws, for a view.
        draw: Its components, when all those are done.
    """

    name: str
    needs: Callable[[View], Sequence[Need]]
    draw: Callable[[View], Any]

    def show(self, view: View) -> Any:
        """The section's place in a page, filled or waiting."""
        _SECTIONS[self.name] = self
        own = {"name": self.name, "at": _href(view.address)}
        return html.Div(_content(self, view), id={"type": BODY, **own}, className="section")


def section(name: str, *needs: str) -> Callable[[Callable[[View], Any]], Section]:
    """Make a function of a view a section that needs some analyses without arguments."""

    def make(draw: Callable[[View], Any]) -> Section:
        return Section(name, lambda view: [(need,) for need in needs], draw)

    return make


def register(app: Dash, site: Site) -> None:
    """Add the callbacks by which waiting sections ask whether they are done."""
    here = {"name": MATCH, "at": MATCH}

    @app.callback(
        Output({"type": BODY, **here}, "children"),
        Input({"type": TICK, **here}, "n_intervals"),
        Input({"type": CANCEL, **here}, "n_clicks"),
        Input({"type": RETRY, **here}, "n_clicks"),
        State({"type": BODY, **here}, "id"),
        prevent_initial_call=True,
    )
    def answer(ticks: int | None, cancels: int | None, retries: int | None, own: dict[str, str]) -> Any:
        path, _, search = own["at"].partition("?")
        view = site.view(path, search)
        found = _SECTIONS.get(own["name"])
        if found is None or not (ticks or cancels or retries):
            return no_update
        clicked = (ctx.triggered_id or {}).get("type")
        for need in found.needs(view):
            if clicked == CANCEL and cancels:
                view.job(*need).stop(PATIENCE_S)
            elif clicked == RETRY and retries:
                site.analyses.retry(view.address.profile, *need, range_ns=view.range_ns)
        return _content(found, view, ticks or 0)


def _href(address: Address) -> str:
    return replace(address).to()


def _content(found: Section, view: View, ticks: int = 0) -> Any:
    try:
        jobs = [view.job(*need) for need in found.needs(view)]
        waiting = _first_waiting(jobs)
        if waiting is not None:
            return _waiting(found, view, waiting, ticks)
        for job in jobs:
            if job.error is not None:
                raise job.error
        return found.draw(view)
    except CancelledError:
        return _stopped(found, view, "Cancelled. Nothing was computed.", "Compute")
    except NeuronToolsError as error:
        return _stopped(found, view, str(error), "Try again")
    except Exception as error:
        logging.getLogger(__name__).exception("A section could not be drawn: %s", found.name)
        return _stopped(found, view, f"This part cannot be shown ({type(error).__name__}).", "")


def _first_waiting(jobs: Sequence[Job]) -> Job | None:
    until = monotonic() + PATIENCE_S
    for job in jobs:
        if not job.wait(max(0.0, until - monotonic())):
            return job
    return None


def _controls(found: Section, view: View, *, ticks: int | None, cancel: str, retry: str) -> list[Any]:
    """The three inputs of the callback; those that are not offered are there, hidden.

    Args:
        ticks: Questions so far; None to ask no more. One more is allowed by each answer: where answers take
            longer than a tick, Dash would drop every one for the question that follows it.
    """
    own = {"name": found.name, "at": _href(view.address)}
    asked = ticks or 0
    return [
        dcc.Interval(
            id={"type": TICK, **own}, interval=TICK_MS, n_intervals=asked, max_intervals=asked + 1,
            disabled=ticks is None,
        ),
        html.Button(cancel, id={"type": CANCEL, **own}, className="button", hidden=not cancel),
        html.Button(retry, id={"type": RETRY, **own}, className="button", hidden=not retry),
    ]  # fmt: skip


def _waiting(found: Section, view: View, job: Job, ticks: int) -> Any:
    controls = _controls(found, view, ticks=ticks, cancel="Cancel", retry="")
    return loading_state(job.progress.text, job.progress.fraction, job.progress.elapsed_s, controls)


def _stopped(found: Section, view: View, message: str, retry: str) -> Any:
    return error_state(message, _controls(found, view, ticks=None, cancel="", retry=retry))
