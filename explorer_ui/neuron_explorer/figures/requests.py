"""Requests of a serving loop: a lane for each, latencies by share of requests, and the loop over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import plotly.graph_objects as go

from neuron_explorer.parts.chart import axis_unit, plain, short, without_middle
from neuron_explorer.theme import BLUE, CATEGORICAL, GREEN, GREY, ORANGE, VERMILION, Theme
from neuron_profile.analysis.request_times import RequestTimes
from neuron_profile.analysis.serving_loop import ServingLoop
from neuron_profile.reports.quantities import count, duration
from neuron_tools.frozen import frozen

HEIGHT, LANE_PIXELS = 280, 22
WINDOWS, RATE_WINDOWS, CURVE_POINTS = 300, 60, 201
LABEL_ROOM = 1.4
"""Of the axis of latencies, for the labels of the longest ones: nothing is drawn right of a rising curve."""
MOST_PARTS = 400
"""In the lanes of one chart: each is a rectangle in the browser."""
NAME_WIDTH = 60
ISOLATED, ISOLATED_END = "\u2068", "\u2069"
"""Around an ID: one of a script that is read from the right turns no words beside it."""
QUANTILES = (0.5, 0.95, 0.99)
ITERATIONS, QUEUED, PREFILL, DECODE = "Iterations", "Queued", "Prefill", "Decode"
_COLOURS = {ITERATIONS: GREEN, QUEUED: GREY, PREFILL: ORANGE, DECODE: BLUE}


@frozen
class Part:
    """A part of a lane, from start to end, in ns; lanes are counted from above."""

    lane: int
    kind: str
    start_ns: int
    end_ns: int
    note: str


def lanes_figure(loop: ServingLoop, chosen: Sequence[int], theme: Theme) -> Any:
    """A lane for each chosen request, in their order, below one of the iterations.

    Its layout's `meta.ns` is how many ns the unit of the axis has.

    Args:
        chosen: Places of the requests.
    """
    factor, unit = axis_unit(loop.range_ns[1])
    parts = _parts(loop, chosen)
    own = {kind: [part for part in parts if part.kind == kind] for kind in _COLOURS}
    figure = go.Figure([_bars(own[kind], kind, factor, theme) for kind in _COLOURS if own[kind]])
    names = [ITERATIONS, *(short(loop.requests[place].request, 24) for place in chosen)]
    figure.update_layout(
        theme.layout(
            height=110 + LANE_PIXELS * len(names), barmode="overlay", bargap=0.25, showlegend=True,
            margin={"t": 36}, meta={"ns": factor}, legend={"traceorder": "normal"},
            xaxis={"title": {"text": f"{unit} from the profile's start"}},
            yaxis={
                "showgrid": False, "zeroline": False, "fixedrange": True, "range": [len(names) - 0.5, -0.5],
                "tickvals": list(range(len(names))), "ticktext": names,
            },
        )
    )  # fmt: skip
    return figure


def _parts(loop: ServingLoop, chosen: Sequence[int]) -> list[Part]:
    """Iterations of the chosen requests, and queue, prefill and iterations of each."""
    lanes = {place: lane for lane, place in enumerate(chosen, 1)}
    parts = [part for place in chosen for part in _before_decode(loop.requests[place], lanes[place])]
    for iteration in loop.iterations:
        name = f"iteration {iteration.number}"
        made = f"{count(iteration.tokens, 'token')} of {count(len(iteration.requests), 'request')}"
        own = [place for place in iteration.requests if place in lanes]
        note = f"{name}, {made}, {duration(iteration.end_ns - iteration.start_ns)}"
        parts += [Part(0, ITERATIONS, iteration.start_ns, iteration.end_ns, note)] if own else []
        for place in own:
            start = max(iteration.start_ns, loop.requests[place].prefill_end_ns)
            note = f"{name}, {duration(iteration.end_ns - start)}"
            parts += (
                [Part(lanes[place], DECODE, start, iteration.end_ns, note)]
                if iteration.end_ns > start
                else []
            )
    return parts


def _before_decode(request: RequestTimes, lane: int) -> Iterator[Part]:
    begun, first = request.begun_ns, request.prefill_end_ns
    name = f"{ISOLATED}{without_middle(request.request, NAME_WIDTH)}{ISOLATED_END}"
    if begun > request.arrived_ns:
        waited = duration(begun - request.arrived_ns)
        yield Part(lane, QUEUED, request.arrived_ns, begun, f"{name} queued {waited}")
    if first > begun or request.token_ns:
        until = "to the first token" if request.token_ns else "until it was aborted"
        yield Part(lane, PREFILL, begun, first, f"{name} {until} {duration(first - begun)}")


def _bars(parts: Sequence[Part], kind: str, factor: float, theme: Theme) -> Any:
    return go.Bar(
        orientation="h", name=kind,
        base=[round(part.start_ns / factor, 6) for part in parts],
        x=[round((part.end_ns - part.start_ns) / factor, 6) for part in parts],
        y=[part.lane for part in parts],
        text=[plain(part.note) for part in parts], textposition="none",
        marker={"color": _COLOURS[kind], "line": {"width": 0.5, "color": theme.paper}},
        hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip


def latency_figure(times_ns: Sequence[float], theme: Theme) -> Any:
    """The share of requests that took at most so long, with p50, p95 and p99 marked."""
    factor, unit = axis_unit(max(times_ns))
    shares = np.linspace(0, 1, CURVE_POINTS)
    curve = go.Scatter(
        x=(np.quantile(times_ns, shares) / factor).round(6).tolist(), y0=0, dy=100 / (CURVE_POINTS - 1),
        mode="lines", line={"color": BLUE, "width": 2},
        hovertemplate="%{y:.0f} % within %{x:.4~g} " + unit + "<extra></extra>",
    )  # fmt: skip
    marked = [float(np.quantile(times_ns, quantile)) for quantile in QUANTILES]
    marks = go.Scatter(
        x=[time / factor for time in marked], y=[100 * quantile for quantile in QUANTILES],
        mode="markers+text", marker={"color": VERMILION, "size": 8}, cliponaxis=False, hoverinfo="skip",
        text=[f" p{100 * quantile:.0f} {duration(time)} " for quantile, time in zip(QUANTILES, marked)],
        textposition=[*["bottom right"] * (len(marked) - 1), "top right"],
    )  # fmt: skip
    figure = go.Figure([curve, marks])
    figure.update_layout(
        theme.layout(
            height=HEIGHT, showlegend=False,
            xaxis={"title": {"text": unit}, "range": [0, LABEL_ROOM * max(times_ns) / factor or 1]},
            yaxis={"title": {"text": "% of requests"}, "range": [0, 104]},
        )
    )  # fmt: skip
    return figure


def load_figure(loop: ServingLoop, theme: Theme) -> Any:
    """The most requests that run and that wait, over time."""
    series = {"Running": (loop.running(WINDOWS), BLUE), "Waiting": (loop.waiting(WINDOWS), ORANGE)}
    lines = [
        _over_time(loop, values.tolist(), name, colour, "%{y}") for name, (values, colour) in series.items()
    ]
    return _time_figure(loop, lines, theme, "requests")


def throughput_figure(loop: ServingLoop, theme: Theme) -> Any:
    """Tokens a second over time, of all requests together."""
    rates = loop.tokens_per_s(RATE_WINDOWS).round(3).tolist()
    line = _over_time(loop, rates, "Tokens/s", GREEN, "%{y:.4~g} tokens/s")
    line.update(fill="tozeroy")
    return _time_figure(loop, [line], theme, "tokens/s")


def cache_figure(loop: ServingLoop, theme: Theme) -> Any:
    """The most blocks of the KV cache that requests held, over time: a line for each process."""
    alone = len(loop.held_blocks) == 1
    lines = [
        _steps_line(
            [use.used_blocks for use in held.in_windows(WINDOWS)], (held.start_ns[0], held.end_ns),
            axis_unit(loop.range_ns[1]), "Blocks" if alone else f"Process {held.process}", colour,
            f"%{{y}} of {held.blocks:,} blocks",
        )
        for held, colour in zip(loop.held_blocks, cycle(CATEGORICAL))
    ]  # fmt: skip
    return _time_figure(loop, lines, theme, "blocks")


def _over_time(loop: ServingLoop, values: Sequence[float], name: str, colour: str, shown: str) -> Any:
    return _steps_line(values, loop.range_ns, axis_unit(loop.range_ns[1]), name, colour, shown)


def _steps_line(
    values: Sequence[Any], range_ns: tuple[int, int], axis: tuple[float, str], name: str, colour: str,
    shown: str,
) -> Any:  # fmt: skip
    """A line of steps; it ends where the last window does."""
    (start, end), (factor, unit) = range_ns, axis
    return go.Scatter(
        x0=start / factor, dx=(end - start) / len(values) / factor, y=[*values, values[-1]],
        name=name, mode="lines",
        line={"shape": "hv", "width": 1.5, "color": colour},
        hovertemplate=shown + " at %{x:.6~g} " + unit + "<extra>" + name + "</extra>",
    )  # fmt: skip


def _time_figure(loop: ServingLoop, lines: Sequence[Any], theme: Theme, title: str) -> Any:
    figure = go.Figure(list(lines))
    figure.update_layout(
        theme.layout(
            height=HEIGHT, margin={"t": 36}, showlegend=len(lines) > 1,
            xaxis={"title": {"text": f"{axis_unit(loop.range_ns[1])[1]} from the profile's start"}},
            yaxis={"title": {"text": title}, "rangemode": "tozero"},
        )
    )  # fmt: skip
    return figure
