"""What `neuron-top` shows of a view, as styled text; the application only places it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from neuron_monitor.api.host import cpu_percents
from neuron_monitor.api.layout import ENGINES
from neuron_monitor.api.rates import CoreRates, logical_rates
from neuron_monitor.api.readings import ProcessReading
from neuron_monitor.api.view import ProcessView, View
from neuron_monitor.report.memory import device_categories, host_categories
from neuron_monitor.report.process_groups import joined_version
from neuron_monitor.top.bars import UNICODE, Glyphs, bar, sparkline
from neuron_monitor.units import ABSENT, binary_size, metric, percent, seconds
from neuron_tools.frozen import frozen

LABEL_WIDTH = 5
CELL_MINIMUM = 8
SPARK_WIDTH = 24
_HOT, _WARM = 0.85, 0.5
# Category, and how it is called where there is room and where there is not.
_HOST_ROWS = (
    ("tensors", "Tensors", "Tens"),
    ("constants", "Constants", "Const"),
    ("dma_buffers", "DMA Buffers", "DMA"),
    ("application_memory", "App. Memory", "App"),
)
_DEVICE_ROWS = (
    ("tensors", "Tensors", "Tens"),
    ("constants", "Constants", "Const"),
    ("model_code", "Model Code", "Code"),
    ("runtime_memory", "Runtime Memory", "RT"),
    ("model_shared_scratchpad", "Model Scratchpad", "Scratch"),
)
_ROOM_FOR_NAMES = 124


@frozen
class Choice:
    """What the user chose to see: all processes or one, percent or FLOP/s, which characters."""

    pid: int | None = None
    as_flops: bool = False
    glyphs: Glyphs = UNICODE


def title(view: View, version: str) -> str:
    """The first line."""
    facts = view.sample.instance
    return f"neuron-top {version} running on {facts.id} ({facts.type})"


def chosen_processes(view: View, choice: Choice) -> list[ProcessView]:
    """The processes that are shown."""
    return [each for each in view.processes if choice.pid in (None, each.process.pid)]


def core_heading(view: View, choice: Choice) -> Text:
    """The heading of the cores, with their mean."""
    rates = list(_logical(view, choice).values())
    devices = view.sample.tree.devices
    architecture = devices[0].facts.core_architecture if devices else ""
    size = view.sample.tree.logical_core_size
    version = joined_version(architecture) if size > 1 else architecture.removeprefix("NC")
    if choice.as_flops:
        mean = f"Total: {metric(sum(each.flops_per_second for each in rates))}FLOP/s"
    else:
        mean = f"Avg: {100 * _mean(rates):.2f}%"
    return Text(f"NeuronCore {version} Utilization ({mean})", style="bold")


def core_grid(view: View, choice: Choice, width: int) -> Text:
    """One row a device, one bar a logical core; rows wrap where the terminal is too narrow."""
    rates = _logical(view, choice)
    size = view.sample.tree.logical_core_size
    highest = max([each.flops_per_second for each in rates.values()] or [0.0]) or 1.0
    held = {core_id // size for core_id in view.allocation}
    lines = []
    for device in view.sample.tree.devices:
        cores = sorted({core.id // size for core in device.cores})
        cell = max(CELL_MINIMUM, (width - LABEL_WIDTH) // max(1, len(cores)))
        per_line = max(1, (width - LABEL_WIDTH) // cell)
        for start in range(0, len(cores), per_line):
            line = Text(f"ND{device.facts.index}".ljust(LABEL_WIDTH) if start == 0 else " " * LABEL_WIDTH)
            for core in cores[start : start + per_line]:
                line.append(_core_cell(rates.get(core), core in held, cell, highest, choice))
            lines.append(line)
    return Text("\n").join(lines) if lines else Text(f"No Neuron device in {view.sample.tree.root}.")


def processor_lines(view: View, choice: Choice, width: int) -> Text:
    """Processors of the host and of the chosen processes: user and system time."""
    host, before = view.sample.host, view.before.host
    user = system = 0.0
    if host is not None and before is not None and host.cpu_ticks:
        old = [before.cpu_ticks.get(cpu, ticks) for cpu, ticks in host.cpu_ticks.items()]
        used = cpu_percents(tuple(map(sum, zip(*old))), tuple(map(sum, zip(*host.cpu_ticks.values()))))
        user, system = used["user"] / 100, used["system"] / 100
    processes = chosen_processes(view, choice)
    return Text("\n").join(
        [
            _processor_line("System vCPU", user, system, width, choice.glyphs),
            _processor_line(
                "Runtime vCPU",
                sum(each.user_share for each in processes),
                sum(each.system_share for each in processes),
                width,
                choice.glyphs,
            ),
        ]
    )


def memory_lines(view: View, choice: Choice, width: int) -> Text:
    """Memory of the chosen processes on host and device, by category."""
    host: dict[str, int] = {}
    device: dict[str, int] = {}
    for each in chosen_processes(view, choice):
        _add(host, host_categories(each.process.host_memory))
        for core in each.process.cores.values():
            _add(device, device_categories(core.device_memory))
    return Text("\n").join(
        [_memory_line("Host", _HOST_ROWS, host, width), _memory_line("Device", _DEVICE_ROWS, device, width)]
    )


def activity_lines(
    view: View, choice: Choice, utilization: Sequence[float], bandwidth: Sequence[float], width: int
) -> Text:
    """Engines, device-memory bandwidth and throttling, with how they were in the last minute."""
    rates = [rates for each in chosen_processes(view, choice) for rates in each.rates.values()]
    engines = "  ".join(f"{name} {percent(_engine(rates, name))}" for name in ENGINES)
    reads = sum(each.bytes_per_second.get("hbm_read_bytes", 0.0) for each in rates)
    writes = sum(each.bytes_per_second.get("hbm_write_bytes", 0.0) for each in rates)
    throttled = max((each.throttled or 0.0 for each in rates), default=0.0)
    spark = max(8, min(SPARK_WIDTH, width - 56))
    first = Text("Engines   ", style="bold").append(engines if rates else ABSENT, style="not bold")
    first.append("  ").append(sparkline(utilization, spark, 1.0, choice.glyphs), style="green")
    second = Text("HBM       ", style="bold")
    second.append(f"read {metric(reads)}B/s  write {metric(writes)}B/s  ", style="not bold")
    second.append(f"throttled {percent(throttled)}", style="red" if throttled > 0.1 else "not bold")
    second.append("  ").append(
        sparkline(bandwidth, spark, max(bandwidth, default=0.0), choice.glyphs), "cyan"
    )
    first.truncate(width)
    second.truncate(width)
    return Text("\n").join([first, second])


def process_row(view: ProcessView) -> tuple[str, ...]:
    """The cells of a process in the table."""
    process = view.process
    rates = list(view.rates.values())
    latency = view.total_latency or {}
    return (
        str(process.pid),
        process.tag,
        ",".join(str(core) for core in sorted(view.rates)),
        percent(_mean(rates)) if process.is_timed else "untimed",
        metric(sum(each.flops_per_second for each in rates)),
        binary_size(device_bytes(process)),
        seconds(latency.get(99)),
        percent(view.user_share + view.system_share),
        process.command,
    )


def mean_rate(view: ProcessView) -> float:
    """Mean utilisation of the logical cores of one process."""
    return _mean(list(view.rates.values()))


def device_bytes(process: ProcessReading) -> int:
    """Device memory that a process holds."""
    return sum(core.device_memory_bytes for core in process.cores.values())


def hbm_bytes_per_second(view: View, choice: Choice) -> float:
    """Bytes that the chosen processes read and write in device memory in a second."""
    return sum(
        rates.bytes_per_second.get("hbm_read_bytes", 0.0) + rates.bytes_per_second.get("hbm_write_bytes", 0.0)
        for each in chosen_processes(view, choice)
        for rates in each.rates.values()
    )


def mean_utilization(view: View, choice: Choice) -> float:
    """Mean over the logical cores that the chosen processes use."""
    return _mean([rates for each in chosen_processes(view, choice) for rates in each.rates.values()])


def _logical(view: View, choice: Choice) -> Mapping[int, CoreRates]:
    if choice.pid is None:
        return logical_rates(view.cores, view.sample.tree.logical_core_size)
    return {core: rates for each in chosen_processes(view, choice) for core, rates in each.rates.items()}


def _core_cell(rates: CoreRates | None, is_held: bool, width: int, highest: float, choice: Choice) -> Text:
    if rates is None:
        return Text(ABSENT.center(width - 1) + " ", style="dim")
    if choice.as_flops:
        share, text = rates.flops_per_second / highest, metric(rates.flops_per_second).replace(" ", "")
    else:
        share, text = rates.utilization, f"{100 * rates.utilization:.0f}%"
    text = text.rjust(4)
    length = max(1, width - 3 - len(text))
    style = "red" if share > _HOT else "yellow" if share > _WARM else "green"
    cell = Text("[", style="dim").append(bar(share, length, choice.glyphs), style=f"not dim {style}")
    cell.append(text, style="not dim" if is_held else "dim").append("] ", style="dim")
    cell.truncate(width)
    return cell


def _processor_line(name: str, user: float, system: float, width: int, glyphs: Glyphs) -> Text:
    numbers = f" [{100 * user:.1f}%, {100 * system:.1f}%]"
    length = max(4, width - 14 - len(numbers))
    users = bar(min(1.0, user), length, glyphs).rstrip(glyphs.empty)
    systems = bar(min(1.0, system), length, glyphs).rstrip(glyphs.empty)
    line = Text(name.ljust(14), style="bold").append(users[:length], style="green not bold")
    line.append(systems[: max(0, length - len(users))], style="red not bold")
    line.append(glyphs.empty * (length - len(line.plain) + 14))
    return line.append(numbers, style="not bold")


def _memory_line(name: str, rows: tuple[tuple[str, str, str], ...], held: dict[str, int], width: int) -> Text:
    line = Text(name.ljust(8), style="bold")
    line.append(f"Total {_size(sum(held.values()), width)}", style="not bold")
    for category, label, short in rows:
        shown = label if width >= _ROOM_FOR_NAMES else short
        line.append(f"  {shown} ", style="dim not bold")
        line.append(_size(held.get(category, 0), width), style="not bold")
    line.truncate(width)
    return line


def _size(size: int, width: int) -> str:
    text = binary_size(size)
    return text if width >= _ROOM_FOR_NAMES else text.replace(" ", "").replace("iB", "")


def _add(total: dict[str, int], more: dict[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _engine(rates: Sequence[CoreRates], name: str) -> float:
    return sum(each.engines.get(name, 0.0) for each in rates) / len(rates) if rates else 0.0


def _mean(rates: Sequence[CoreRates]) -> float:
    return sum(each.utilization for each in rates) / len(rates) if rates else 0.0
