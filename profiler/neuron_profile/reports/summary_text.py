"""The summary on a terminal: readable in 80 columns, with and without colour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from neuron_profile.analysis.expected import ExpectedTimes
from neuron_profile.analysis.host_activity import HostIdle
from neuron_profile.analysis.hotspots import Cost, Hotspots, ModuleNode
from neuron_profile.analysis.identity import Identity
from neuron_profile.analysis.occupancy import Bound, Occupancy
from neuron_profile.analysis.overview import EngineUse, Overview
from neuron_profile.analysis.serving import Serving
from neuron_profile.analysis.source_frames import SourceTexts
from neuron_profile.analysis.traces.overview import TraceOverview
from neuron_profile.analysis.warnings import ProfileWarning
from neuron_profile.reports.compiler_text import compiler_line
from neuron_profile.reports.host_text import host_text, leading_text
from neuron_profile.reports.places import place
from neuron_profile.reports.quantities import count, duration, percent, scaled
from neuron_profile.reports.trace_text import kernel_table, trace_rows, trace_verdict

UTILIZATIONS = {
    "MFU": "mfu_estimated_percent",
    "HFU": "hfu_estimated_percent",
    "MBU": "mbu_estimated_percent",
}
UNATTRIBUTED = "(between operations)"  # of a graph: launch, drain and gaps
ROWS = 10
MODULE_ROWS = 16
MODULE_DEPTH = 4
MODULE_SHARE = 0.01  # smaller modules are not worth a row of the tree
BAR_CELLS = 24
LIBRARY_ROWS = 5
PLACE_WIDTH = 38
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def print_summary(console: Console, identity: Identity, overview: Overview) -> None:
    """Print the whole summary of a profile."""
    for part in summary_parts(identity, overview):
        console.print(part)


def summary_parts(identity: Identity, overview: Overview) -> Iterator[RenderableType]:
    """The sections of the summary, in order."""
    hotspots = overview.hotspots
    yield heading(identity)
    if overview.is_foreign and overview.trace is not None:
        yield from _trace_parts(overview.trace)
        yield warning_list(overview.warnings)
        return
    if not overview.occupancy.executions:
        yield verdict(identity, overview)
        if overview.engines:
            yield engine_bars(overview.engines)
        yield warning_list(overview.warnings)
        return
    yield totals(overview)
    yield verdict(identity, overview)
    if overview.engines:
        yield engine_bars(overview.engines)
    yield module_table(hotspots)
    yield operation_table(hotspots)
    yield line_table(hotspots, overview.texts)
    if overview.kernel_lines:
        yield kernel_line_table(overview)
    if overview.compiler_changes:
        yield Text(f"{compiler_line(overview.compiler_changes)}\n")
    yield warning_list(overview.warnings)


def _trace_parts(trace: TraceOverview) -> Iterator[RenderableType]:
    """What another tool's trace shows."""
    yield _grid(trace_rows(trace))
    yield Text(f"{trace_verdict(trace)}\n", style="bold")
    if trace.kernels:
        yield kernel_table(trace.kernels, sum(kernel.total_ns for kernel in trace.kernels))


def heading(identity: Identity) -> RenderableType:
    """Name, command and circumstances; a notice where the profile is not whole."""
    facts = [
        f"{identity.target} (simulated)" if identity.target else "",
        f"LNC {identity.lnc}" if identity.lnc and identity.lnc > 1 else "",
        count(len(identity.processes), "process") if identity.processes else "",
        ", ".join(identity.formats),
        f"host clock {identity.host_clock}" if identity.host_clock else "",
        *identity.settings,
    ]
    lines = [Text.assemble((identity.name, "bold"), "  ", identity.command)]
    lines.append(Text(", ".join(filter(None, facts)), style="dim"))
    lines.extend(Text(notice, style="bold yellow") for notice in notices(identity))
    return Group(*lines, "")


def made_by(identity: Identity) -> str:
    """The tool that recorded a profile, and the one that imported it."""
    if not identity.formats:
        return identity.producer
    return f"{', '.join(identity.formats)}, imported by {identity.producer}"


def notices(identity: Identity) -> list[str]:
    """Sentences on how the capture ended, where it did not end well."""
    found = []
    if identity.interrupted:
        found.append("Interrupted: the command was stopped; the profile holds what ran until then.")
    elif identity.exit_status:
        found.append(f"The command failed with exit status {identity.exit_status}.")
    if not identity.complete:
        found.append("Incomplete: the recording did not reach its end; what was written until then is shown.")
    found.extend(f"Missing: {sentence}" for sentence in identity.missing)
    return found


def totals(overview: Overview) -> RenderableType:
    """Times, work and traffic of the whole program."""
    return _grid(total_rows(overview))


def _grid(rows: Iterable[tuple[str, str]]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, text in rows:
        table.add_row(name, text)
    return Group(table, "")


def total_rows(overview: Overview) -> list[tuple[str, str]]:
    """Names and values of the totals."""
    return [
        *_time_rows(overview.occupancy),
        *_expected_rows(overview.expected),
        *_idle_rows(overview.host_idle),
        *_serving_rows(overview.serving),
        *_work_rows(overview),
        *_memory_rows(overview),
    ]


def _time_rows(occupancy: Occupancy) -> Iterator[tuple[str, str]]:
    executions = count(occupancy.executions, "execution")
    cores = count(occupancy.cores, "NeuronCore")
    yield "Device time", f"{duration(occupancy.device_ns)} in {executions} on {cores}"
    if occupancy.window_ns:
        idle = f"{duration(occupancy.idle_ns)} idle between executions"
        yield "Device busy", f"{percent(occupancy.busy_share)} of {duration(occupancy.window_ns)}; {idle}"
    wait = f", {duration(occupancy.host_wait_ns)} of it waiting for the device"
    yield "Host time", duration(occupancy.host_ns) + (wait if occupancy.host_wait_ns else "")


def _expected_rows(expected: ExpectedTimes | None) -> Iterator[tuple[str, str]]:
    if expected is None:
        return
    chance = f"{expected.chance_percent:.0f} %"
    yield "On silicon", f"{duration(expected.low_ns)} to {duration(expected.high_ns)} expected ({chance})"
    compiler, hardware = expected.compiler_percent, expected.hardware_percent
    yield "", f"compiler may differ by {compiler:.0f} %, hardware model by {hardware:.0f} %"


def _idle_rows(idle: HostIdle | None) -> Iterator[tuple[str, str]]:
    text = host_text(idle) if idle is not None else ""
    if text:
        yield "Idle while", f"the host was {text}"


def _serving_rows(serving: Serving | None) -> Iterator[tuple[str, str]]:
    if serving is None:
        return
    rate = f"{serving.tokens_per_s:,.1f} tokens/s"
    aborted = f", {serving.aborted:,} aborted" if serving.aborted else ""
    yield "Requests", f"{len(serving.requests):,} with {count(serving.tokens, 'token')}, {rate}{aborted}"
    waited, each = _latency(serving.queue), _latency(serving.per_token)
    if waited:
        yield "Queue", waited
    yield (
        "Tokens",
        f"first after {_latency(serving.first_token)}" + (f", each further {each}" if each else ""),
    )


def _latency(measure: Callable[[float], float | None]) -> str:
    """The median and the 99th percentile; "" where they are not known."""
    median, late = measure(0.5), measure(0.99)
    return "" if median is None or late is None else f"{duration(median)} (p99 {duration(late)})"


def _work_rows(overview: Overview) -> Iterator[tuple[str, str]]:
    metrics = overview.metrics
    if metrics.get("hardware_flops"):
        model, hardware = metrics.get("model_flops") or 0, metrics["hardware_flops"]
        yield "Matrix work", f"{scaled(model, 'FLOP')} of the model, {scaled(hardware, 'FLOP')} executed"
        yield "Utilization", _utilization(lambda name: float(metrics.get(name) or 0.0)) + " of all time"
        yield "", _utilization(overview.while_busy) + " of the device time"
    read, written = metrics.get("hbm_read_bytes") or 0, metrics.get("hbm_write_bytes") or 0
    if read or written:
        yield "HBM traffic", f"{scaled(read, 'B')} read, {scaled(written, 'B')} written"


def _utilization(value: Callable[[str], float]) -> str:
    texts = (f"{short} {percent(value(name))}" for short, name in UTILIZATIONS.items())
    return ", ".join(texts)


def _memory_rows(overview: Overview) -> Iterator[tuple[str, str]]:
    copies = overview.transfers
    if copies.to_device_count or copies.to_host_count:
        to_device = (
            f"{scaled(copies.to_device_bytes, 'B')} to the device in {count(copies.to_device_count, 'copy')}"
        )
        to_host = f"{scaled(copies.to_host_bytes, 'B')} back in {copies.to_host_count:,}"
        yield "Host copies", f"{to_device}, {to_host}"
    for peak in overview.memory:
        where = f" on NeuronCore {peak.device_idx}" if len(overview.memory) > 1 else ""
        yield "Peak memory", f"{scaled(peak.peak_bytes, 'B')}{where}, reached after {duration(peak.time_ns)}"
        held = [row for row in overview.held if row.core == peak.device_idx]
        if any(row.category != "other" for row in held):
            yield "", ", ".join(f"{row.category} {percent(row.of_peak)}" for row in held)


def verdict(identity: Identity, overview: Overview) -> RenderableType:
    """One sentence: what the program waits for."""
    return Text(f"{overview_verdict(identity, overview)}\n", style="bold")


def overview_verdict(identity: Identity, overview: Overview) -> str:
    """What the program waits for, in one sentence; of what has no host or no device, what there is."""
    if overview.is_device_alone:
        share = overview.active_share
        active = "" if share is None else f", of which it was active {percent(share)}"
        return f"The device alone was profiled: {duration(overview.total_ns)}{active}."
    if overview.is_foreign and overview.trace is not None:
        return trace_verdict(overview.trace)
    if overview.occupancy.bound is Bound.NOTHING_RAN and identity.formats:
        return "No execution on a NeuronCore is in what was imported."
    if overview.occupancy.bound is Bound.NOTHING_RAN and not identity.ended_well:
        return "Nothing had run on the device when the command ended."
    return verdict_text(overview.occupancy, overview.host_idle)


def verdict_text(occupancy: Occupancy, idle: HostIdle | None = None) -> str:
    """The sentence as plain text; what the host did meanwhile is named where it is no dispatching."""
    busy, idle_share = percent(occupancy.steady_share), percent(1 - occupancy.steady_share)
    when = "of the time after the first step" if occupancy.has_steps else "of the time"
    remedy = "larger batches" if occupancy.compiled_graphs else "torch.compile, larger batches"
    if occupancy.bound is Bound.NOTHING_RAN:
        return "Nothing ran on the device: did the program move its model and data to 'neuron'?"
    if occupancy.bound is Bound.DEVICE:
        return f"Device-bound: the device was busy {busy} {when}; a faster host would change little."
    if occupancy.awaited_rank is not None:
        return (
            f"Waiting for rank {occupancy.awaited_rank}: the devices idled {idle_share} {when}, "
            "most of it in collectives that this rank reached last; give it as much work as the others."
        )
    meanwhile = leading_text(idle) if idle is not None else ""
    if occupancy.bound is Bound.HOST and meanwhile:
        return (
            f"Host-bound: the device was idle {idle_share} {when}, most of it while the host was {meanwhile}."
        )
    if occupancy.bound is Bound.HOST:
        return (
            f"Host-bound: the device was idle {idle_share} {when}; dispatch less often "
            f"({remedy}) or make the Python between operations faster."
        )
    return f"Partly host-bound: the device was busy {busy} {when} and idle {idle_share}."


def engine_bars(engines: Iterable[EngineUse]) -> RenderableType:
    """How long each engine was active, as a part of the device time and of all time."""
    table = _table("Engine", "")
    _number_columns(table, "Active", "Of device time", "Of all time")
    for engine in engines:
        bar = Text(bar_text(engine.of_device), style="green")
        table.add_row(
            engine.name, bar, duration(engine.active_ns), percent(engine.of_device), percent(engine.of_total)
        )
    return Group(table, "")


def bar_text(fraction: float, cells: int = BAR_CELLS) -> str:
    """A horizontal bar of block characters, an eighth of a cell exact.

    Example:
        >>> bar_text(0.5, 4)
        '██  '
    """
    eighths = round(min(max(fraction, 0.0), 1.0) * cells * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(cells)


def module_table(hotspots: Hotspots) -> RenderableType:
    """The costliest modules as a tree."""
    table = _table("Module")
    _number_columns(table, "Time", "Share", "Forward", "Backward", "Ops")
    for depth, label, cost in module_rows(hotspots):
        table.add_row(_name("  " * depth + label), *_cost_cells(cost, hotspots))
    if hotspots.unattributed_ns >= hotspots.device_ns * MODULE_SHARE:
        share = _share(hotspots.unattributed_ns, hotspots)
        table.add_row(_name(UNATTRIBUTED), duration(hotspots.unattributed_ns), share)
    return Group(table, "")


def module_rows(hotspots: Hotspots) -> list[tuple[int, str, Cost]]:
    """Depth, label and cost of the tree's rows: the costliest modules with all their parents.

    A module with a single child and no time of its own shares its row with it.
    """
    chosen = _costliest(hotspots.modules, hotspots.device_ns * MODULE_SHARE)
    rows: list[tuple[int, str, Cost]] = []
    _add_rows(hotspots.modules, -1, "", chosen, rows)
    return rows


def _costliest(root: ModuleNode, least_ns: float) -> set[str]:
    """Paths of the modules to show."""
    nodes = sorted(_walk(root), key=lambda node: (-node.cost.device_ns, node.path))
    return {node.path for node in nodes[: MODULE_ROWS + 1] if node.cost.device_ns >= least_ns}


def _walk(node: ModuleNode, depth: int = 0) -> Iterator[ModuleNode]:
    yield node
    if depth < MODULE_DEPTH:
        for child in node.children:
            yield from _walk(child, depth + 1)


def _add_rows(
    node: ModuleNode, depth: int, prefix: str, chosen: set[str], rows: list[tuple[int, str, Cost]]
) -> None:
    label = f"{prefix}{node.name}"
    shown = [child for child in node.children if child.path in chosen]
    if depth >= 0:
        if len(node.children) == 1 and shown and not node.own_ns:
            _add_rows(shown[0], depth, f"{label}/", chosen, rows)
            return
        rows.append((depth, label, node.cost))
    for child in shown:
        _add_rows(child, depth + 1, "", chosen, rows)
    if depth < 0 and node.own_ns:
        rows.append((0, "(outside modules)", _own_cost(node)))


def _own_cost(node: ModuleNode) -> Cost:
    inside = [child.cost for child in node.children]
    return Cost(
        node.cost.forward_ns - sum(cost.forward_ns for cost in inside),
        node.cost.backward_ns - sum(cost.backward_ns for cost in inside),
        node.cost.count - sum(cost.count for cost in inside),
    )


def operation_table(hotspots: Hotspots) -> RenderableType:
    """The costliest operations."""
    table = _table("Operation")
    _number_columns(table, "Time", "Share", "Forward", "Backward", "Ops")
    for row in hotspots.operations[:ROWS]:
        table.add_row(_name(row.name or "(unnamed)"), *_cost_cells(row.cost, hotspots))
    return Group(table, "")


def line_table(hotspots: Hotspots, texts: SourceTexts) -> RenderableType:
    """The costliest lines of the user's own code with their text; backward time stands at the forward line.

    Below them stand the costliest lines inside the libraries that they call.
    """
    table = _table()
    table.add_column("Source line", no_wrap=True)
    _number_columns(table, "Own code", "Share", "Backward")
    table.add_column("Text")
    for row in hotspots.lines[:ROWS]:
        table.add_row(
            Text(place(row.place, PLACE_WIDTH)),
            duration(row.cost.device_ns),
            _share(row.cost.device_ns, hotspots),
            duration(row.cost.backward_ns) if row.cost.backward_ns else "",
            _name(texts.line(row.place)),
        )
    covered = hotspots.device_ns - hotspots.without_line_ns
    own = _share(hotspots.own_code_ns, hotspots)
    note = f"{_share(covered, hotspots)} of the device time has a source line, {own} one of your own code.\n"
    return Group(table, *_library_lines(hotspots), Text(note, style="dim"))


def _library_lines(hotspots: Hotspots) -> list[RenderableType]:
    """The costliest lines of libraries; nothing where all time is on the user's own."""
    own = {row.place for row in hotspots.lines}
    inside = [row for row in hotspots.exact_lines if row.place not in own][:LIBRARY_ROWS]
    if not inside:
        return []
    table = _table("Inside libraries")
    _number_columns(table, "Self", "Share")
    for row in inside:
        time = row.cost.device_ns
        table.add_row(Text(place(row.place, PLACE_WIDTH)), duration(time), _share(time, hotspots))
    return ["", table, ""]


def kernel_line_table(overview: Overview) -> RenderableType:
    """The costliest lines inside kernels with their text."""
    table = _table()
    table.add_column("Inside kernels", no_wrap=True)
    _number_columns(table, "Time", "Share")
    table.add_column("Text")
    for row in overview.kernel_lines[:ROWS]:
        table.add_row(
            Text(place(row.place, PLACE_WIDTH)),
            duration(row.device_ns),
            _share(row.device_ns, overview.hotspots),
            _name(overview.texts.line(row.place)),
        )
    return Group(table, "")


def warning_list(warnings: Iterable[ProfileWarning]) -> RenderableType:
    """The warnings, one a line."""
    lines = [
        Text(f"Warning ({row.category}): {row.message}" + (f" ({row.count} times)" if row.count > 1 else ""))
        for row in warnings
    ]
    return Group(*lines)


def _name(text: str) -> Text:
    """A name as it stands, cut where it is too long."""
    return Text(text, overflow="ellipsis", no_wrap=True)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), header_style="bold")
    for column in columns:
        table.add_column(column)  # may shrink, its cells are cut
    return table


def _number_columns(table: Table, *names: str) -> None:
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)


def _cost_cells(cost: Cost, hotspots: Hotspots) -> tuple[str, str, str, str, str]:
    return (
        duration(cost.device_ns),
        _share(cost.device_ns, hotspots),
        duration(cost.forward_ns) if cost.forward_ns else "",
        duration(cost.backward_ns) if cost.backward_ns else "",
        f"{cost.count:,}",
    )


def _share(device_ns: float, hotspots: Hotspots) -> str:
    return percent(device_ns / hotspots.device_ns) if hotspots.device_ns else "-"
