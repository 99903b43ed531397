"""Memory over time: HBM by category, fill of SBUF and PSUM, and the address map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from neuron_explorer.memory_use import AddressMap, FillSeries, HbmSeries
from neuron_explorer.parts.chart import axis_unit, plain
from neuron_explorer.theme import BLUE, CATEGORICAL, ORANGE, Theme
from neuron_profile.reports.quantities import duration, scaled

HEIGHT, MAP_HEIGHT = 300, 460
DASHES = ("solid", "dot", "dash", "dashdot")  # of one core after the other


def hbm_figure(series: HbmSeries, theme: Theme) -> Any:
    """Bytes by category, one area upon the other."""
    figure = go.Figure()
    factor, unit = axis_unit(max(series.time_ns, default=0))
    times = [time / factor for time in series.time_ns]
    for number, (name, values) in enumerate(series.bytes_by_category.items()):
        figure.add_trace(
            go.Scatter(
                x=times, y=values, name=name, stackgroup="all",
                mode="lines",
                line={"shape": "hv", "width": 1, "color": CATEGORICAL[number % len(CATEGORICAL)]},
                hovertemplate="%{y:.4s}B at %{x:.6~g} " + unit + "<extra>%{fullData.name}</extra>",
            )
        )  # fmt: skip
    return _over_time(figure, theme, unit, "bytes held", tickformat="~s", ticksuffix="B")


def fill_figure(series: Sequence[FillSeries], theme: Theme) -> Any:
    """Greatest fill of SBUF and PSUM in each step of time."""
    figure = go.Figure()
    factor, unit = axis_unit(max((time for one in series for time in one.time_ns), default=0))
    cores = list(dict.fromkeys((one.process, one.core) for one in series))
    several_processes = len({process for process, _ in cores}) > 1
    for one in series:
        process = f", process {one.process}" if several_processes else ""
        where = f"{process}, core {one.core}" if len(cores) > 1 else ""
        figure.add_trace(
            go.Scatter(
                x=[time / factor for time in one.time_ns], y=[100 * value for value in one.peak],
                name=one.memory + where, mode="lines",
                line={
                    "shape": "hv", "width": 1.5, "color": BLUE if one.memory == "SBUF" else ORANGE,
                    "dash": DASHES[cores.index((one.process, one.core)) % len(DASHES)],
                },
                hovertemplate="%{y:.1f} % at %{x:.6~g} " + unit + "<extra>%{fullData.name}</extra>",
            )
        )  # fmt: skip
    return _over_time(figure, theme, unit, "% full")


def _over_time(figure: Any, theme: Theme, unit: str, title: str, **axis: Any) -> Any:
    figure.update_layout(
        theme.layout(
            height=HEIGHT,
            margin={"t": 36},
            showlegend=True,
            xaxis={"title": {"text": f"{unit} from the profile's start"}},
            yaxis={"title": {"text": title}, "rangemode": "tozero", **axis},
        )
    )
    return figure


def address_figure(tiles: AddressMap, theme: Theme) -> Any:
    """One rectangle per tile: time from first write to last use, addresses inside a partition."""
    owners = list(dict.fromkeys(tiles.owner))
    colours = {owner: CATEGORICAL[number % len(CATEGORICAL)] for number, owner in enumerate(owners)}
    texts = [
        f"{plain(owner) or '(no operation)'}<br>{scaled(float(size), 'B')} at {int(address):,}"
        f" in {int(parts)} partitions"
        f"<br>{duration(float(start))} to {duration(float(end))}"
        for owner, size, address, parts, start, end in zip(
            tiles.owner, tiles.byte_count, tiles.address, tiles.partitions, tiles.start_ns, tiles.end_ns
        )
    ]
    figure = go.Figure(
        go.Bar(
            orientation="h",
            base=(tiles.start_ns / 1000).round(3).tolist(),
            x=((tiles.end_ns - tiles.start_ns) / 1000).round(3).tolist(),
            y=(tiles.address + tiles.byte_count / 2).tolist(),
            width=tiles.byte_count.tolist(),
            marker={
                "color": [colours[owner] for owner in tiles.owner],
                "opacity": 0.75,
                "line": {"width": 0.5, "color": theme.paper},
            },
            text=texts,
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        )
    )
    figure.update_layout(
        theme.layout(
            height=MAP_HEIGHT,
            barmode="overlay",
            xaxis={"title": {"text": "µs from the execution's start"}},
            yaxis={
                "title": {"text": "byte address inside a partition"},
                "rangemode": "tozero",
                "tickformat": "~s",
            },
        )
    )
    return figure
