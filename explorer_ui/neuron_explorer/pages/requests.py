"""Requests of a serving loop: a lane for each, latencies, throughput, how many run and wait."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, html

from neuron_explorer.address import SCOPE
from neuron_explorer.analyses import analysis
from neuron_explorer.figures.requests import (
    MOST_PARTS,
    QUANTILES,
    cache_figure,
    lanes_figure,
    latency_figure,
    load_figure,
    throughput_figure,
)
from neuron_explorer.page import Page, Site, View
from neuron_explorer.parts.chart import chart_card, without_middle
from neuron_explorer.parts.key_numbers import key_numbers
from neuron_explorer.parts.quantities import Cell, count_cell, time_cell
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.table import table_card
from neuron_explorer.parts.tabs import tabs
from neuron_explorer.sections import section
from neuron_profile.analysis.request_times import RequestTimes, has_requests
from neuron_profile.analysis.serving import Request, Serving
from neuron_profile.analysis.serving_loop import Iteration, ServingLoop, find_serving_loop
from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.reports.places import place
from neuron_profile.reports.quantities import count, duration, percent
from neuron_tools.profile.reader import Profile

SERVING_LOOP, HAS_REQUESTS = "serving-loop", "has-requests"
LANES, ROWS, LINE_WIDTH, NAME_WIDTH = "requests-lanes", 60, 32, 40
ORDERS: dict[str, tuple[str, Callable[[Request], float]]] = {
    "arrival": ("By arrival", lambda request: request.arrived_ns),
    "first": ("Slowest first token", lambda request: -(request.first_token_ns or 0)),
    "token": ("Slowest per token", lambda request: -(request.per_token_ns or 0)),
}
HEADINGS = (
    "Request", "Arrived", "Tokens", "Queue", "Prefill", "First token", "Decode", "Per token", "Tokens per s",
    "Source line",
)  # fmt: skip
ITERATION_HEADINGS = ("Iteration", "Start", "Time", "Requests", "Tokens")


_EXPLAINS = (
    "Requests share an iteration, one run of the model, where their parts stand below each other. Click a "
    "part to open its time in the workspace."
)


@analysis(HAS_REQUESTS, "Looking for requests", of_whole=True)
def _has_requests(profile: Profile) -> bool:
    return has_requests(profile)


@analysis(SERVING_LOOP, "Following the requests", of_whole=True)
def _serving_loop(profile: Profile) -> ServingLoop | None:
    return find_serving_loop(profile)


def layout(view: View) -> list[Any]:
    """Components of the page; `order` in the address chooses which requests are shown first."""
    return [REQUESTS.show(view)]


@section("requests/all", SERVING_LOOP)
def REQUESTS(view: View) -> Any:
    """Charts and tables, or a sentence where there are no requests."""
    loop: ServingLoop | None = view.result(SERVING_LOOP)
    if loop is None:
        return empty_state(
            "There are no requests with tokens in this profile.",
            "Those of vLLM are recorded as it is; another server marks its own by ranges named "
            "“request ID”, “queue ID” and “token ID” (torch.profiler.record_function).",
        )
    serving = Serving(tuple(Request.of(request) for request in loop.requests))
    return [
        _numbers(serving, loop),
        *_lanes(view, loop, serving),
        html.Div(
            [
                chart_card("Throughput", throughput_figure(loop, view.theme)),
                chart_card("Running and waiting requests", load_figure(loop, view.theme)),
            ],
            className="grid-2",
        ),
        html.Div(_latencies(view, serving), className="grid-2"),
        *_cache(view, loop),
        _quantiles(serving),
        _requests(view, loop, serving),
        _iterations(view, loop),
    ]


def _numbers(serving: Serving, loop: ServingLoop) -> Any:
    """What the summary says of the requests, and how many share an iteration."""
    shared = sum(len(iteration.requests) for iteration in loop.iterations) / len(loop.iterations)
    medians = (
        ("Queue", serving.queue(0.5)), ("First token", serving.first_token(0.5)),
        ("Per further token", serving.per_token(0.5)),
    )  # fmt: skip
    return key_numbers(
        [
            ("Requests", f"{len(serving.requests):,}", _tokens(serving, loop)),
            ("Throughput", f"{serving.tokens_per_s:,.1f}", "tokens/s"),
            *((name, duration(time), "median") for name, time in medians if time is not None),
            *_most_held(loop),
            ("Requests per iteration", f"{shared:.2f}", f"mean of {len(loop.iterations):,}"),
        ]
    )


def _most_held(loop: ServingLoop) -> list[tuple[str, str, str]]:
    """The most blocks of the KV cache that one process held at once."""
    fullest = max(loop.held_blocks, key=lambda held: held.share, default=None)
    if fullest is None:
        return []
    told = f"{fullest.most:,} of {count(fullest.blocks, 'block')}"
    return [("KV cache, at most", percent(fullest.share), told)]


def _cache(view: View, loop: ServingLoop) -> list[Any]:
    if not loop.held_blocks:
        return []
    explains = "Blocks that requests held; what is only kept for the same prefix again is free."
    return [chart_card("KV cache", cache_figure(loop, view.theme), explains=explains)]


def _tokens(serving: Serving, loop: ServingLoop) -> str:
    unfinished = sum(not request.is_finished for request in loop.requests)
    kinds = {"unfinished": unfinished, "aborted": serving.aborted}
    others = "".join(f", {number:,} {kind}" for kind, number in kinds.items() if number)
    return f"{count(serving.tokens, 'token')}{others}"


def _order(view: View) -> str:
    asked = view.address.get("order") or ""
    return asked if asked in ORDERS else "arrival"


def _in_order(view: View, serving: Serving) -> list[int]:
    """Places of all requests in the order that was asked for."""
    key = ORDERS[_order(view)][1]
    return sorted(range(len(serving.requests)), key=lambda place: key(serving.requests[place]))


def _lanes(view: View, loop: ServingLoop, serving: Serving) -> list[Any]:
    chosen = _with_room(loop, _in_order(view, serving))
    left = (
        "" if len(chosen) == len(loop.requests) else f" {len(chosen):,} of {len(loop.requests):,} are shown."
    )
    titles = {name: title for name, (title, _) in ORDERS.items()}
    return [
        tabs(view, "order", "Order", titles, _order(view)),
        chart_card(
            "Requests over time",
            _leading(view, lanes_figure(loop, chosen, view.theme)),
            explains=f"{_EXPLAINS}{left}",
            identity=LANES,
        ),
    ]


def _with_room(loop: ServingLoop, order: Sequence[int]) -> Sequence[int]:
    """Places of the first requests in an order, at least one, whose parts one chart holds."""
    parts = list(accumulate(len(loop.requests[place].token_ns) + 2 for place in order))
    return order[: max(1, bisect_right(parts, MOST_PARTS))]


def _leading(view: View, figure: Any) -> Any:
    """The figure, whose parts lead to their time in the workspace."""
    figure.layout.meta = {**figure.layout.meta, "href": _workspace(view)}
    return figure


def _workspace(view: View, start_ns: int | None = None, end_ns: int | None = None) -> str:
    address = replace(view.address, start_ns=start_ns, end_ns=end_ns)
    return address.to("/workspace", **{SCOPE: None})


def _latencies(view: View, serving: Serving) -> list[Any]:
    each = [request.per_token_ns for request in serving.requests if request.per_token_ns is not None]
    first = [
        float(request.first_token_ns) for request in serving.requests if request.first_token_ns is not None
    ]
    series = [("Time to the first token (TTFT)", first), ("Time per further token (TPOT)", each)]
    return [chart_card(title, latency_figure(times, view.theme)) for title, times in series if times]


def _quantiles(serving: Serving) -> Any:
    measures = (
        ("First token", serving.first_token),
        ("Per token", serving.per_token),
        ("Queue", serving.queue),
    )
    rows: list[list[Cell | str]] = [
        [name, *(time_cell(measure(one)) for one in (*QUANTILES, 1.0))] for name, measure in measures
    ]
    return table_card("Latency", ("Time", *(f"p{100 * one:.0f}" for one in QUANTILES), "Longest"), rows)


def _requests(view: View, loop: ServingLoop, serving: Serving) -> Any:
    chosen = _in_order(view, serving)[:ROWS]
    rows = [_row(view, loop.requests[place], serving.requests[place]) for place in chosen]
    headings: tuple[str, ...] = HEADINGS
    if any(request.handover_ns is not None for request in serving.requests):
        headings = (*HEADINGS, "Handover")
        rows = [[*row, time_cell(serving.requests[place].handover_ns)] for row, place in zip(rows, chosen)]
    return table_card("Requests", headings, rows, explains=_first_of(loop.requests, "request"))


def _first_of(rows: Sequence[Any], noun: str) -> str:
    return f"The first {ROWS} of {count(len(rows), noun)}." if len(rows) > ROWS else ""


def _row(view: View, times: RequestTimes, request: Request) -> list[Any]:
    return [
        _name(view, times),
        time_cell(request.arrived_ns), count_cell(request.tokens), time_cell(request.queue_ns),
        time_cell(request.prefill_ns), time_cell(request.first_token_ns), time_cell(request.decode_ns),
        time_cell(request.per_token_ns), Cell(f"{request.tokens_per_s:,.1f}", request.tokens_per_s, True),
        _line(view, times),
    ]  # fmt: skip


def _name(view: View, times: RequestTimes) -> Cell:
    request = times.request
    end = " (aborted)" if times.is_aborted else "" if times.is_finished else " (unfinished)"
    shown = without_middle(request, NAME_WIDTH) + end
    whole = None if shown == request else request
    href = _workspace(view, times.arrived_ns, times.ended_ns)
    return Cell(shown, whole, href=href, title=whole or "")


def _line(view: View, times: RequestTimes) -> Cell:
    if not times.file:
        return Cell("")
    address = replace(view.address, start_ns=times.arrived_ns, end_ns=times.ended_ns)
    href = address.to("/source", file=times.file, line=times.line, **{SCOPE: None})
    return Cell(place(SourceLine(times.file, times.line), LINE_WIDTH), href=href, title=times.file)


def _iterations(view: View, loop: ServingLoop) -> Any:
    rows = [_iteration_row(view, iteration) for iteration in loop.iterations[:ROWS]]
    return table_card(
        "Iterations", ITERATION_HEADINGS, rows, explains=_first_of(loop.iterations, "iteration")
    )


def _iteration_row(view: View, iteration: Iteration) -> list[Any]:
    start, end = iteration.start_ns, iteration.end_ns
    return [
        Cell(f"iteration {iteration.number}", iteration.number, href=_workspace(view, start, end)),
        time_cell(start), time_cell(end - start), count_cell(len(iteration.requests)),
        count_cell(iteration.tokens),
    ]  # fmt: skip


def register(app: Dash, site: Site) -> None:
    """Let parts of lanes lead to their time."""
    app.clientside_callback(
        ClientsideFunction("explorer", "open_part"),
        Output("go-to", "modified_timestamp", allow_duplicate=True),
        Input(LANES, "clickData"),
        State(LANES, "figure"),
        prevent_initial_call=True,
    )


def _has_content(view: View) -> bool:
    return bool(view.analyses.now(view.address.profile, HAS_REQUESTS))


PAGE = Page(
    "/requests", "Requests", layout, register, group="Where time goes", has_content=_has_content,
    follows_range=False,
)  # fmt: skip
