"""The difference between two profiles, for people, for pull requests and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict

from rich.console import Console

from neuron_profile.analysis.comparison.cost import Cost
from neuron_profile.analysis.comparison.difference import Difference, Reason
from neuron_profile.analysis.comparison.layers import LayersDelta, join_layers
from neuron_profile.analysis.expected import is_beyond_doubt
from neuron_profile.reports.places import place
from neuron_profile.reports.quantities import duration, percent, scaled
from neuron_profile.reports.tables import data_table

_REASONS: Mapping[str, tuple[str, str, Callable[[int], str]]] = {
    "calls": ("more calls", "fewer calls", "{:,}".format),
    "adjusted_flops": (
        "more matrix work as bf16",
        "less matrix work as bf16",
        lambda value: scaled(value, "FLOP"),
    ),
    "spill_bytes": ("more spills", "fewer spills", lambda value: scaled(value, "B")),
    "hbm_bytes": ("more HBM bytes", "fewer HBM bytes", lambda value: scaled(value, "B")),
    "tiles": ("other tiles, more instructions", "other tiles, fewer instructions", "{:,}".format),
    "throttled": ("throttled: Tensor engine", "throttled less: Tensor engine", duration),
    "instructions": ("more instructions", "fewer instructions", "{:,}".format),
    "dma_wait_ns": ("lost overlap with DMA", "better overlap with DMA", duration),
    "semaphore_wait_ns": ("longer waits for engines", "shorter waits for engines", duration),
}
LINE_COLUMNS = ("Source line", "Base", "New", "Change", "Text")
LINE_ROWS, PLACE_WIDTH = 10, 38
COLUMNS = ("Module", "Operation", "Base", "New", "Change", "Because of")


def as_json(difference: Difference, cost: Cost | None = None) -> str:
    """The difference as one JSON object; times in nanoseconds."""
    deltas = [{**asdict(delta), "delta_ns": delta.delta_ns} for delta in difference.deltas]
    lines = [{**asdict(line), "delta_ns": line.delta_ns} for line in difference.lines]
    return json.dumps(
        {
            **asdict(difference),
            "deltas": deltas,
            "lines": lines,
            "delta_device_ns": _device_delta(difference),
            "cost": asdict(cost) if cost else None,
        },
        indent=2,
    )


def print_difference(
    console: Console,
    difference: Difference,
    limit: int,
    cost: Cost | None = None,
    *,
    each_layer: bool = False,
) -> None:
    """Print the totals and the operations that changed most.

    Args:
        each_layer: Numbered layers are not told as one.
    """
    for line in _totals(difference, cost):
        console.print(line)
    shown, rest_ns = _shown(difference, limit, each_layer)
    if not shown:
        console.print("No operation takes more or less time.")
        return
    console.print()
    console.print(data_table(list(COLUMNS), [_row(each) for each in shown], right=(2, 3, 4)))
    console.print(f"All other operations: {signed(rest_ns)}")
    rows = _line_rows(difference)
    if rows:
        console.print()
        console.print(data_table(list(LINE_COLUMNS), rows, right=(1, 2, 3)))


def as_markdown(
    difference: Difference, limit: int, cost: Cost | None = None, *, each_layer: bool = False
) -> str:
    """Headline and table for a pull request."""
    shown, rest_ns = _shown(difference, limit, each_layer)
    lines = [*(f"- {line}" for line in _totals(difference, cost)), ""]
    if shown:
        lines.append("| " + " | ".join(COLUMNS) + " |")
        lines.append("|---|---|--:|--:|--:|---|")
        lines += ["| " + " | ".join(_escaped(cell) for cell in _row(each)) + " |" for each in shown]
        lines += ["", f"All other operations: {signed(rest_ns)}"]
    rows = _line_rows(difference)
    if rows:
        lines += ["", "| " + " | ".join(LINE_COLUMNS) + " |", "|---|--:|--:|--:|---|"]
        lines += ["| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _shown(difference: Difference, limit: int, each_layer: bool) -> tuple[list[LayersDelta], int]:
    """The operations that changed most, and by how much all others did."""
    deltas = difference.deltas
    rows = [LayersDelta(delta, 1) for delta in deltas] if each_layer else join_layers(deltas)
    shown = [each for each in rows if each.delta.delta_ns][:limit]
    return shown, _device_delta(difference) - sum(each.delta.delta_ns for each in shown)


def _line_rows(difference: Difference) -> list[list[str]]:
    """The lines of the user's own code that changed most."""
    return [
        [
            place(line.place, PLACE_WIDTH), duration(line.base_ns), duration(line.new_ns),
            signed(line.delta_ns), line.text,
        ]
        for line in difference.lines[:LINE_ROWS]
    ]  # fmt: skip


def signed(nanoseconds: int) -> str:
    """A difference of times with its sign."""
    return f"{'-' if nanoseconds < 0 else '+'}{duration(abs(nanoseconds))}"


def _totals(difference: Difference, cost: Cost | None) -> list[str]:
    rows = [
        ("Device time", difference.base_device_ns, difference.new_device_ns),
        ("Idle between executions", difference.base_idle_ns, difference.new_idle_ns),
        ("Together", difference.base_total_ns, difference.new_total_ns),
    ]
    if difference.base_step_ns and difference.new_step_ns:
        rows.append(("A typical step", difference.base_step_ns, difference.new_step_ns))
    told = [f"{name}: {duration(old)} -> {duration(new)} ({_change(old, new)})" for name, old, new in rows]
    return [*told, *([_cost(cost)] if cost else []), *_doubt(difference)]


def _cost(cost: Cost) -> str:
    what = "A million typical steps cost" if cost.is_of_steps else "A million times what was recorded costs"
    relative = f" ({'+' if cost.new >= cost.base else '-'}{_share(cost)})" if cost.base else ""
    prices = f"at {cost.base_price:g} and {cost.new_price:g} an hour"
    return f"{what}: {cost.base:,.4g} -> {cost.new:,.4g}{relative}, {prices}"


def _share(cost: Cost) -> str:
    return percent(abs(cost.new - cost.base) / cost.base)


def _doubt(difference: Difference) -> list[str]:
    """A sentence where the chip's own times may lie the other way round."""
    old, new = difference.base_device_ns, difference.new_device_ns
    if not difference.is_predicted or old == new or is_beyond_doubt(old, new):
        return []
    return ["Device times differ by less than either prediction may be off from the chip's time."]


def _change(old: int, new: int) -> str:
    relative = f", {'+' if new >= old else '-'}{percent(abs(new - old) / old)}" if old else ""
    return signed(new - old) + relative


def _row(each: LayersDelta) -> list[str]:
    delta = each.delta
    explained = "; ".join(reason_text(reason) for reason in delta.reasons[:2]) or delta.change
    direction = " (backward)" if delta.key.backward else ""
    module = (delta.key.module or "-") + (f" ({each.modules} x)" if each.modules > 1 else "")
    return [
        module, delta.key.operation + direction, duration(delta.base_ns), duration(delta.new_ns),
        signed(delta.delta_ns), explained,
    ]  # fmt: skip


def reason_text(reason: Reason) -> str:
    """A reason in words: "more HBM bytes: 1 MB to 2 MB"."""
    more, fewer, quantity = _REASONS[reason.counter]
    return f"{more if reason.new > reason.base else fewer}: {quantity(reason.base)} to {quantity(reason.new)}"


def _device_delta(difference: Difference) -> int:
    return difference.new_device_ns - difference.base_device_ns


def _escaped(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
