"""The first page of a profile: what ran, what bound it, where time went, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from dash import html

from neuron_explorer import results
from neuron_explorer.address import SCOPE, WHOLE
from neuron_explorer.figures.engine_time import TITLES, engine_time_figure
from neuron_explorer.figures.engine_use import engine_use_figure
from neuron_explorer.page import Page, View
from neuron_explorer.parts.card import card
from neuron_explorer.parts.chart import chart_card
from neuron_explorer.parts.findings import finding_list, gain_of
from neuron_explorer.parts.key_numbers import key_numbers
from neuron_explorer.parts.quantities import Cell, count_cell, share_cell, time_cell
from neuron_explorer.parts.table import table_card
from neuron_explorer.sections import section
from neuron_explorer.theme import engine_place
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.hotspots import Hotspots
from neuron_profile.analysis.identity import Identity
from neuron_profile.analysis.idle_reasons import PARTS, EngineTime
from neuron_profile.analysis.overview import Overview
from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.analysis.traces.overview import TraceOverview
from neuron_profile.reports.compiler_text import compiler_line
from neuron_profile.reports.places import place
from neuron_profile.reports.quantities import count, duration, percent, scaled
from neuron_profile.reports.summary_text import made_by, notices, overview_verdict, total_rows
from neuron_profile.reports.trace_text import trace_rows

ROWS = 10
FINDINGS = 5
UNKNOWN = "unknown"


def layout(view: View) -> list[Any]:
    """Components of the page."""
    summary = SUMMARY.show(view)  # begun first: the headline takes longer
    return [
        HEADLINE.show(view),
        *([PROGRAM_HEADLINE.show(view)] if view.range_ns else []),
        summary,
        ENGINE_TIME.show(view),
        TOP_FINDINGS.show(view),
        HOTSPOTS.show(view),
        SYSTEM.show(view),
    ]


@section("overview/headline", results.FINDINGS)
def HEADLINE(view: View) -> Any:
    """The finding with the largest gain in what is shown: cause, line and gain in one sentence."""
    first = _first(view.result(results.FINDINGS))
    return [] if first is None else _headline(view, first, gain_of(view, first))


@section("overview/program-headline", results.FINDINGS, results.PROGRAM_FINDINGS)
def PROGRAM_HEADLINE(view: View) -> Any:
    """What the whole program, start-up and compiling included, has and the step that is shown does not."""
    first = _first(view.result(results.PROGRAM_FINDINGS)) if view.range_ns else None
    if first is None or first.rule in {finding.rule for finding in view.result(results.FINDINGS)}:
        return []
    whole = replace(view.address, start_ns=None, end_ns=None).to("/advice", **{SCOPE: WHOLE})
    return _headline(view, first, first.gain_of, "The whole program: ", whole)


def _first(findings: Sequence[Finding]) -> Finding | None:
    return next((finding for finding in findings if (finding.gain_ns or 0) > 0), None)


def _headline(view: View, finding: Finding, of: str, before: str = "", advice: str | None = None) -> Any:
    more = html.A("Advice", href=advice or view.address.to("/advice"), className="button primary")
    return html.Div([html.P([before, *finding_sentence(view, finding, of)]), more], className="headline")


def finding_sentence(view: View, finding: Finding, of: str) -> list[Any]:
    """A finding in one sentence: its cause, its line, and what fixing it saves of what."""
    at: list[Any] = []
    if finding.place.file:
        here = SourceLine(finding.place.file, finding.place.line)
        name = f"{PurePath(here.file).name}:{here.line}"
        link = html.A(name, href=source_link(view, here.file, here.line), title=place(here))
        at = [", at ", link]
    gain = f" Fixing it saves {duration(finding.gain_ns or 0)}, {percent(finding.gain)} of {of} (simulated)."
    return [html.B(finding.title), *at, ".", gain]


@section("overview/summary", results.IDENTITY, results.OVERVIEW)
def SUMMARY(view: View) -> list[Any]:
    """What bound the program, in one sentence and six numbers."""
    identity: Identity = view.result(results.IDENTITY)
    overview: Overview = view.result(results.OVERVIEW)
    return [
        *(html.P(notice, className="notice") for notice in notices(identity)),
        html.P(overview_verdict(identity, overview), className="verdict"),
        _trace_figures(overview.trace)
        if overview.is_foreign and overview.trace is not None
        else _figures(view, overview),
        *_kernels(overview.trace),
        *(
            [
                chart_card(
                    "Engines",
                    engine_use_figure(overview.engines, view.theme, of_total=overview.is_device_alone),
                )
            ]
            if overview.engines
            else []
        ),
    ]


def _figures(view: View, overview: Overview) -> Any:
    metrics, occupancy = overview.metrics, overview.occupancy
    if overview.is_device_alone:
        share = overview.active_share
        numbers = [
            ("Device time", duration(overview.total_ns), "without a host"),
            ("Device active", UNKNOWN if share is None else percent(share), "of the device time"),
        ]
    else:
        numbers = [
            ("Device time", duration(occupancy.device_ns), count(occupancy.executions, "execution")),
            *_expected(overview),
            ("Device busy", percent(occupancy.busy_share), f"of {duration(occupancy.window_ns)}"),
        ]
    peak = max((peak.peak_bytes for peak in overview.memory), default=0)
    numbers += [("Peak memory", scaled(peak, "B"), "held by tensors")] if peak else []
    if view.range_ns is None:  # the published metrics are those of the whole profile
        numbers += [
            ("MFU", percent(_mfu(overview)) if _mfu(overview) else UNKNOWN, "of the device time"),
            ("HBM traffic", scaled(_traffic(overview), "B"), "read and written"),
            ("Matrix work", _known(metrics.get("model_flops"), "FLOP"), "of the model"),
        ]
    return key_numbers(numbers)


def _expected(overview: Overview) -> list[tuple[str, str, str]]:
    """Where the chip's device time is expected, of a simulated one."""
    found = overview.expected
    if found is None:
        return []
    reasons = f"compiler {found.compiler_percent:.0f} %, hardware model {found.hardware_percent:.0f} %"
    text = f"{duration(found.low_ns)} to {duration(found.high_ns)}"
    return [("On silicon", text, f"expected, {found.chance_percent:.0f} %: {reasons}")]


def _trace_figures(trace: TraceOverview) -> Any:
    """Numbers of another tool's trace: what the devices did, and what the host did beside them."""
    devices, times = trace.devices, [device.time for device in trace.devices]
    work = sum(device.kernels for device in devices)
    communication, hidden = (
        sum(time.communication_ns for time in times),
        sum(time.hidden_ns for time in times),
    )
    numbers = [("Host", duration(trace.host.window_ns), count(trace.host.threads, "thread"))]
    if devices:
        numbers = [
            ("Devices", _device_names(trace), count(sum(device.streams for device in devices), "stream")),
            ("Device busy", percent(trace.busy_share), f"of {duration(trace.window_ns)}"),
            (
                "Computing",
                duration(sum(time.computing_ns for time in times)),
                count(work, devices[0].computes),
            ),
            (
                "Collectives",
                duration(communication) if communication else "none",
                f"{percent(hidden / communication)} hidden by computing"
                if communication
                else "in this trace",
            ),
            ("Idle", duration(trace.idle_ns), "neither computing, communicating nor copying"),
            *numbers,
        ]
    return key_numbers(numbers)


def _device_names(trace: TraceOverview) -> str:
    """Each model with how many there are of it."""
    names = [device.name for device in trace.devices]
    return ", ".join(
        name if names.count(name) == 1 else f"{names.count(name)} × {name}" for name in dict.fromkeys(names)
    )


def _kernels(trace: TraceOverview | None) -> list[Any]:
    """The kernels that take longest."""
    if trace is None or not trace.kernels:
        return []
    whole_ns = sum(kernel.total_ns for kernel in trace.kernels)
    rows = [
        (
            kernel.name, kernel.kind, share_cell(kernel.total_ns / whole_ns, bar=True) if whole_ns else "",
            time_cell(kernel.total_ns), count_cell(kernel.calls), time_cell(kernel.mean_ns),
        )
        for kernel in trace.kernels[:ROWS]
    ]  # fmt: skip
    return [table_card("Kernels", ("Kernel", "Kind", "Share", "Time", "Calls", "Mean"), rows)]


def _known(value: Any, unit: str) -> str:
    """A quantity that no program has none of; "unknown" where a profile does not tell it."""
    return scaled(float(value), unit) if value else UNKNOWN


def _mfu(overview: Overview) -> float:
    if overview.is_device_alone:
        return float(overview.metrics.get("mfu_estimated_percent") or 0.0)
    return overview.while_busy("mfu_estimated_percent")


def _traffic(overview: Overview) -> float:
    return sum(float(overview.metrics.get(f"hbm_{way}_bytes") or 0) for way in ("read", "write"))


@section("overview/engine-time", results.IDLE)
def ENGINE_TIME(view: View) -> Any:
    """How each engine spent its time."""
    found: tuple[EngineTime, ...] = view.result(results.IDLE)
    if not found:
        return []
    engines = sorted(found, key=lambda row: (row.process, row.core, engine_place(row.engine)))
    headings = ("Engine", "Window", *(TITLES[part] for part in PARTS))
    return [
        chart_card(
            "Where the time of each engine goes",
            engine_time_figure(engines, view.theme),
            explains="From the start of a core's first execution to the end of its last."
            if view.range_ns is None
            else "All of the range that is shown.",
        ),
        table_card("Engine time in numbers", headings, [_engine_row(engine) for engine in engines]),
    ]


def _engine_row(engine: EngineTime) -> list[Any]:
    name = f"{engine.engine} (process {engine.process}, core {engine.core})"
    return [name, time_cell(engine.window_ns), *(time_cell(getattr(engine, part)) for part in PARTS)]


@section("overview/findings", results.FINDINGS)
def TOP_FINDINGS(view: View) -> Any:
    """The findings with the largest gain."""
    findings = view.result(results.FINDINGS)
    if not findings:
        return []
    more = html.A("All advice", href=view.address.to("/advice"), className="button quiet")
    return card("What to do first", finding_list(view, findings[:FINDINGS]), actions=[more])


@section("overview/hotspots", results.OVERVIEW)
def HOTSPOTS(view: View) -> Any:
    """The costliest operations and lines."""
    overview: Overview = view.result(results.OVERVIEW)
    hotspots = overview.hotspots
    if not hotspots.charges:
        return []
    return html.Div([_operations(hotspots), _lines(view, hotspots)], className="grid-2")


def _operations(hotspots: Hotspots) -> Any:
    rows = [
        (
            Cell(row.name or "(unnamed)", select=f"operation:{row.name}"),
            share_cell(row.cost.device_ns / hotspots.device_ns, bar=True),
            time_cell(row.cost.device_ns),
            count_cell(row.cost.count),
        )
        for row in hotspots.operations[:ROWS]
    ]
    return table_card("Costliest operations", ("Operation", "Share", "Time", "Operations"), rows)


def _lines(view: View, hotspots: Hotspots) -> Any:
    rows = [
        (
            Cell(
                place(row.place),
                href=source_link(view, row.place.file, row.place.line),
                title=row.place.file,
                select=f"line:{row.place.file}:{row.place.line}",
            ),
            share_cell(row.cost.device_ns / hotspots.device_ns, bar=True),
            time_cell(row.cost.device_ns),
        )
        for row in hotspots.lines[:ROWS]
    ]
    return table_card("Costliest source lines", ("Line", "Share", "Time"), rows) if rows else None


def source_link(view: View, file: str, line: int) -> str:
    """Address of a line on the page Source."""
    return view.address.to("/source", file=file, line=line)


@section("overview/system", results.IDENTITY, results.OVERVIEW)
def SYSTEM(view: View) -> Any:
    """What was captured, on what, and what the profile warns of."""
    identity: Identity = view.result(results.IDENTITY)
    overview: Overview = view.result(results.OVERVIEW)
    facts = [
        ("Command", html.Code(identity.command) if identity.command else ""),
        ("Target", identity.target),
        ("Logical NeuronCore", f"{identity.lnc} physical" if identity.lnc else ""),
        ("Host clock", identity.host_clock),
        ("Settings", ", ".join(identity.settings)),
        ("Made by", made_by(identity)),
        ("Schema", identity.schema_version),
        ("Folder", html.Code(str(identity.path))),
        *(_totals(overview) if view.range_ns is None else []),
    ]
    listed = [part for name, value in facts if value for part in (html.Dt(name), html.Dd(value))]
    warnings = [(row.category, row.message, count_cell(row.count)) for row in overview.warnings]
    changed = compiler_line(overview.compiler_changes)
    return [
        card("What was captured", html.Dl(listed, className="facts")),
        *([card("What the compiler changed", html.P(changed))] if changed else []),
        *([table_card("Warnings", ("Kind", "Message", "Times"), warnings)] if warnings else []),
    ]


def _totals(overview: Overview) -> list[tuple[str, str]]:
    if overview.is_foreign and overview.trace is not None:
        return trace_rows(overview.trace)
    return total_rows(overview)


PAGE = Page("/overview", "Overview", layout, group="Where time goes")
