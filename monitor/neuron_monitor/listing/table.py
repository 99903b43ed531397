"""The table that `neuron-ls` prints."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_monitor.listing.devices import ListedDevice, Listing
from neuron_tools.frozen import frozen

COMMAND_WIDTH = 40
WIDE_COMMAND_WIDTH = 80


@frozen
class _Column:
    """A column: the two lines of its heading, and the text of each line of each device."""

    heading: tuple[str, str]
    cells: tuple[tuple[str, ...], ...]

    @property
    def width(self) -> int:
        lines = [text for cell in self.cells for text in cell]
        return max(len(text) for text in (*self.heading, *lines))


def as_table(listing: Listing, *, wide: bool = False) -> str:
    """The listing as text: three lines on the machine, then one row a device.

    Columns of which nothing is known are left out; commands are cut to 40 characters, 80 if `wide`.
    """
    header = [
        f"instance-type: {listing.instance.type}",
        f"instance-id: {listing.instance.id}",
        f"logical-neuroncore-config: {listing.logical_core_size}",
    ]
    columns = _columns(listing.devices, WIDE_COMMAND_WIDTH if wide else COMMAND_WIDTH)
    rule = "+" + "+".join("-" * (column.width + 2) for column in columns) + "+"
    lines = [rule, *(_heading_line(columns, part) for part in (0, 1)), rule]
    for row, device in enumerate(listing.devices):
        for line in range(max(1, len(device.processes))):
            lines.append(_line(columns, row, line))
        if len(device.processes) > 1 and row + 1 < len(listing.devices):
            lines.append(rule)
    return "\n".join([*header, *lines, rule])


def _columns(devices: Sequence[ListedDevice], command_width: int) -> list[_Column]:
    facts = [device.facts for device in devices]
    processes = [device.processes for device in devices]
    columns = [
        _single(("NEURON", "DEVICE"), [str(fact.index) for fact in facts]),
        _single(("NEURON", "CORES"), [str(len(device.core_ids)) for device in devices]),
        _single(("NEURON", "CORE IDS"), [_range(device.core_ids) for device in devices]),
        _single(("NEURON", "MEMORY"), [_gigabytes(fact.memory_bytes) for fact in facts]),
        _single(("CONNECTED", "DEVICES"), [", ".join(map(str, fact.connected_to)) for fact in facts]),
        _single(("PCI", "BDF"), [fact.bdf for fact in facts]),
        _Column(("PID", ""), tuple(tuple(str(each.pid) for each in own) for own in processes)),
        _Column(
            ("COMMAND", ""),
            tuple(tuple(_cut(each.command, command_width) for each in own) for own in processes),
        ),
        _single(("CPU", "AFFINITY"), [fact.cpu_affinity for fact in facts]),
        _single(("NUMA", "NODE"), [fact.numa_node for fact in facts]),
        _Column(
            ("RUNTIME", "VERSION"), tuple(tuple(each.runtime_version for each in own) for own in processes)
        ),
    ]
    return [column for column in columns if any(text for cell in column.cells for text in cell)]


def _single(heading: tuple[str, str], texts: list[str]) -> _Column:
    return _Column(heading, tuple((text,) for text in texts))


def _heading_line(columns: list[_Column], part: int) -> str:
    return "|" + "|".join(f" {column.heading[part]:^{column.width}} " for column in columns) + "|"


def _line(columns: list[_Column], row: int, line: int) -> str:
    texts = [column.cells[row][line] if line < len(column.cells[row]) else "" for column in columns]
    return "|" + "|".join(f" {text:<{column.width}} " for text, column in zip(texts, columns)) + "|"


def _range(numbers: tuple[int, ...]) -> str:
    if len(numbers) < 2:
        return "".join(map(str, numbers))
    return f"{numbers[0]}-{numbers[-1]}"


def _gigabytes(size: int) -> str:
    return f"{size >> 30} GB" if size else ""


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
