"""The page's charts over time: which columns each shows, and the Plotly figure of some rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_monitor.api.layout import ENGINES, TRAFFIC_NODES
from neuron_monitor.dashboard.history import History, Row
from neuron_monitor.report.memory import DEVICE_CATEGORIES
from neuron_tools.frozen import frozen

GRAPH_CONFIG = {"displaylogo": False, "displayModeBar": False, "doubleClick": "reset"}
# Okabe and Ito's palette: told apart with any colour vision, on light and dark.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
INK = {"light": "#24292f", "dark": "#d0d7de"}
GRID = {"light": "#d8dee4", "dark": "#30363d"}


# A device in use by half a percent is seen to be; noise below a tenth of that is not blown up.
SHARE_RANGE = {"include": [0, 0.005], "clipmax": 1.02}


@frozen
class Chart:
    """One chart.

    Attributes:
        key: Its id in the page.
        lines: Column and label of each line.
        format: Plotly's format of the axis, e.g. ".2~%".
        is_share: Whether values are shares: the axis fits them, and does not pass 1.
        is_stacked: Whether lines are areas on top of each other.
    """

    key: str
    title: str
    lines: tuple[tuple[str, str], ...]
    format: str = "~s"
    suffix: str = ""
    is_share: bool = False
    is_stacked: bool = False


_MEMORY_LABELS = {
    "model_code": "code",
    "model_shared_scratchpad": "scratchpad",
    "runtime_memory": "runtime",
}
CHARTS = (
    Chart(
        "utilization",
        "NeuronCores in use",
        (
            ("utilization_mean", "mean"),
            ("utilization_maximum", "busiest"),
            ("throttled_maximum", "throttled"),
        ),
        ".2~%",
        is_share=True,
    ),
    Chart(
        "engines", "Engines, mean", tuple((f"engine_{name}", name) for name in ENGINES), ".2~%", is_share=True
    ),
    Chart(
        "traffic",
        "Traffic",
        tuple(
            (f"{name}_per_second", name.removesuffix("_bytes").replace("_", " ")) for name in TRAFFIC_NODES
        ),
        suffix="B/s",
    ),
    Chart(
        "memory",
        "Device memory",
        tuple((f"memory_{name}_bytes", _MEMORY_LABELS.get(name, name)) for name in DEVICE_CATEGORIES),
        suffix="B",
        is_stacked=True,
    ),
    Chart(
        "executions",
        "Executions a second",
        (("completed_per_second", "completed"), ("errors_per_second", "failed")),
    ),
    Chart(
        "latency",
        "Latency of executions, last 10 s",
        tuple(
            (f"latency_{kind}_p{percentile}_seconds", f"{kind} p{percentile}")
            for kind in ("total", "device")
            for percentile in (50, 99)
        ),
        suffix="s",
    ),
    Chart("flops", "FLOP/s of the Tensor engines", (("flops_per_second", "all cores"),)),
    Chart(
        "host",
        "Host",
        (("host_processor_share", "processors"), ("host_memory_share", "memory")),
        ".2~%",
        is_share=True,
    ),
)


def make_figure(chart: Chart, history: History, rows: Sequence[Row], theme: str) -> dict[str, Any]:
    """A chart of some rows as a Plotly figure."""
    times = [row.time_ms for row in rows]
    traces = [
        _trace(chart, label, times, history.column(rows, column), colour)
        for (column, label), colour in zip(chart.lines, COLOURS)
    ]
    return {"data": traces, "layout": make_layout(chart, theme)}


def make_layout(chart: Chart, theme: str) -> dict[str, Any]:
    """The chart's frame; `uirevision` keeps the user's zoom while data comes in."""
    axis = {"gridcolor": GRID[theme], "zeroline": False, "linecolor": GRID[theme]}
    return {
        "uirevision": "kept",
        "margin": {"l": 58, "r": 34, "t": 8, "b": 30},
        "height": 210,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": INK[theme], "size": 11, "family": "system-ui, sans-serif"},
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": "#161b22" if theme == "dark" else "#ffffff"},
        "dragmode": "zoom",
        "showlegend": len(chart.lines) > 1,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "font": {"size": 10}},
        "xaxis": {
            **axis,
            "type": "date",
            "automargin": True,
            "tickformat": "%H:%M:%S",
            "hoverformat": "%Y-%m-%d %H:%M:%S UTC",
            "nticks": 6,
        },
        "yaxis": {
            **axis,
            "tickformat": chart.format,
            "ticksuffix": chart.suffix,
            "fixedrange": True,
            "rangemode": "tozero",
            **({"autorangeoptions": SHARE_RANGE} if chart.is_share else {}),
        },
    }


def make_extension(chart: Chart, history: History, rows: Sequence[Row], most_points: int) -> list[Any]:
    """New rows for a chart that is already drawn, in the form of `dcc.Graph.extendData`."""
    times = [row.time_ms for row in rows]
    columns = [history.column(rows, column) for column, _ in chart.lines]
    return [{"x": [times] * len(columns), "y": columns}, list(range(len(columns))), most_points]


def _trace(
    chart: Chart, label: str, times: list[int], values: list[float | None], colour: str
) -> dict[str, Any]:
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "name": label,
        "x": times,
        "y": values,
        "line": {"color": colour, "width": 1.4},
        "connectgaps": False,
    }
    if chart.is_stacked:
        trace.update(stackgroup="all", line={"color": colour, "width": 0.5})
    return trace
