"""The page's parts that show one moment: figures at the top, devices with their cores, processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from neuron_monitor.api.view import ProcessView, View
from neuron_monitor.dashboard.history import History, Row
from neuron_monitor.units import binary_size, metric, percent, seconds

_HEADINGS = (
    "pid",
    "tag",
    "cores",
    "utilisation",
    "FLOP/s",
    "device memory",
    "host memory",
    "p50",
    "p99",
    "processors",
    "profile",
)


def window_choice(windows_s: Sequence[int], chosen_s: int) -> Any:
    """The control that chooses how much of the past the charts show."""
    labels = {each: f"{each // 60} min" if each < 3600 else f"{each // 3600} h" for each in windows_s}
    return dcc.Dropdown(
        options=[{"label": label, "value": each} for each, label in labels.items()],
        value=chosen_s,
        id="window",
        clearable=False,
        searchable=False,
        className="window",
    )


def figures(view: View, history: History, row: Row) -> list[Any]:
    """The row of figures at the top."""
    values = dict(zip(history.columns, row.values))
    devices = view.sample.tree.devices
    total = sum(device.facts.memory_bytes for device in devices)
    used = sum(core.device_memory_bytes for device in devices for core in device.cores)
    idle = [core for core, each in view.allocation.items() if each.idle_s > 60]
    core_count = view.sample.tree.core_count()
    return [
        _figure("devices", str(len(devices)), f"{core_count} physical cores"),
        _figure("cores in use", str(len(view.allocation)), f"{len(idle)} idle over a minute", len(idle) > 0),
        _figure("utilisation", percent(values["utilization_mean"]), "of the cores in use"),
        _figure("FLOP/s", metric(values["flops_per_second"]), "Tensor engines"),
        _figure("device memory", binary_size(used), f"of {binary_size(total)}" if total else ""),
        _figure("executions", metric(values["completed_per_second"]) + "/s", "completed"),
        _figure(
            "errors", metric(values["errors_per_second"]) + "/s", "failed", values["errors_per_second"] > 0
        ),
        _figure("latency", seconds(values["latency_total_p99_seconds"]), "p99 of the last 10 s"),
        _figure("host", percent(values["host_processor_share"]), "of the processors"),
    ]


def device_grid(view: View) -> list[Any]:
    """One card a device: its cores as a heat map, its memory, what stands out."""
    cards = []
    for device in view.sample.tree.devices:
        used = sum(core.device_memory_bytes for core in device.cores)
        total = device.facts.memory_bytes
        cells = [_core_cell(core.id, view) for core in device.cores]
        cards.append(
            html.Div(
                [
                    html.Div(
                        [
                            html.B(f"neuron{device.facts.index}"),
                            html.Span(device.facts.name),
                            html.Span(_power(device.power)),
                        ],
                        className="device-title",
                    ),
                    html.Div(cells, className="cores"),
                    html.Div(
                        html.Div(style={"width": f"{100 * used / total if total else 0:.1f}%"}),
                        className="bar",
                        title=f"{binary_size(used)} of {binary_size(total)}",
                    ),
                ],
                className="device",
            )
        )
    return cards


def process_table(view: View) -> Any:
    """The processes that use devices."""
    if not view.processes:
        return html.P("No process uses a device.", className="quiet")
    return html.Table(
        [
            html.Thead(html.Tr([html.Th(heading) for heading in _HEADINGS])),
            html.Tbody([_process_row(each) for each in view.processes]),
        ]
    )


def notices(view: View, recording_error: str) -> list[Any]:
    """What the reader should know: nodes that could not be read, history that could not be written."""
    found = [str(fault) for fault in view.sample.tree.faults[:3]]
    more = len(view.sample.tree.faults) - len(found)
    if more > 0:
        found.append(f"and {more} more nodes")
    if view.sample.host_fault is not None:
        found.append(str(view.sample.host_fault))
    if recording_error:
        found.append(recording_error)
    if not view.sample.tree.devices:
        found.append(f"There is no Neuron device in {view.sample.tree.root}.")
    return [html.P(text) for text in found]


def _figure(name: str, value: str, note: str, stands_out: bool = False) -> Any:
    return html.Div(
        [html.Span(name), html.Strong(value), html.Small(note)],
        className="figure alert" if stands_out else "figure",
    )


def _core_cell(core_id: int, view: View) -> Any:
    """A core: its shade is its utilisation; hatched where it is held and idle, empty where it is free."""
    allocation, rates = view.allocation.get(core_id), view.cores.get(core_id)
    if allocation is None or rates is None:
        return html.Div(str(core_id), className="core free", title=f"core {core_id}: not in use")
    engines = ", ".join(f"{name} {percent(share)}" for name, share in rates.engines.items())
    text = (
        f"core {core_id}: {percent(rates.utilization)}; {engines or 'engines not told'}; "
        f"pid {', '.join(map(str, allocation.pids))}; idle for {seconds(allocation.idle_s)}"
    )
    return html.Div(
        percent(rates.utilization),
        className="core idle" if allocation.idle_s > 60 else "core",
        style={"--heat": f"{rates.utilization:.3f}"},
        title=text,
    )


def _power(power: Any) -> str:
    if power is None or power.status != "POWER_STATUS_VALID":
        return ""
    return f"{power.average_percent:.0f} % power"


def _process_row(view: ProcessView) -> Any:
    process = view.process
    rates = list(view.rates.values())
    utilization = sum(each.utilization for each in rates) / len(rates) if rates else 0.0
    held = sum(core.device_memory_bytes for core in process.cores.values())
    latency = view.total_latency or {}
    cells = (
        str(process.pid),
        process.tag,
        ", ".join(str(core) for core in sorted(view.rates)),
        percent(utilization) if process.is_timed else "not timed",
        metric(sum(each.flops_per_second for each in rates)),
        binary_size(held),
        binary_size(sum(process.host_memory.values())),
        seconds(latency.get(50)),
        seconds(latency.get(99)),
        percent(view.user_share + view.system_share),
        process.profile or "",
    )
    return html.Tr([html.Td(cell) for cell in cells], title=process.command)
