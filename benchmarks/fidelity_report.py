"""Writes the picture and the table of docs/fidelity.md: `python -m benchmarks.fidelity_report [FOLDER]`."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.fidelity import one_per_execution
from benchmarks.fidelity_kernels.measurement import Measurement, measurements
from benchmarks.fidelity_kernels.prediction import Prediction, predict

COLOURS = {"inf2": "#8c6bb1", "trn1": "#2171b5", "trn2": "#238b45", "trn3": "#d94801"}
UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))
SIZE, MARGIN = 560, 60


def main(folder: Path) -> None:
    """Write `pictures/fidelity.svg` and `fidelity-rows.md` into a folder."""
    predictions = predict(measurements())
    built = one_per_execution([p for p in predictions if not p.reason])
    times = [p for p in built if p.measurement.unit == "ns"]
    (folder / "pictures" / "fidelity.svg").write_text(scatter(times), encoding="utf-8")
    (folder / "fidelity-rows.md").write_text("\n".join(table(built, predictions)) + "\n", encoding="utf-8")


def scatter(predictions: Sequence[Prediction]) -> str:
    """Predicted over measured times, both logarithmic, with the lines of +-20 %."""
    values = [value for p in predictions for value in (p.predicted, p.measurement.value)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def at(value: float) -> float:
        return MARGIN + (math.log10(value) - low) / (high - low) * SIZE

    def line(factor: float, style: str) -> str:
        ends = 10.0**low, 10.0**high
        (x1, x2), (y1, y2) = (at(x) for x in ends), (_flip(at(y * factor)) for y in ends)
        return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#999" {style}/>'

    total = SIZE + 2 * MARGIN
    marks = [
        f'<circle cx="{at(p.measurement.value):.1f}" cy="{_flip(at(p.predicted)):.1f}" r="4" '
        f'fill="{COLOURS[p.measurement.target]}" fill-opacity="0.65"><title>{escape(_label(p.measurement))}: '
        f"{_time(p.predicted)} predicted, {_time(p.measurement.value)} measured</title></circle>"
        for p in predictions
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {total}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{total}" height="{total}" fill="white"/>',
            *_axes(range(low, high + 1), at),
            line(1.0, ""),
            line(1.2, 'stroke-dasharray="4 4"'),
            line(1 / 1.2, 'stroke-dasharray="4 4"'),
            *marks,
            *_legend(),
            "</svg>",
            "",
        ]
    )


def table(built: Sequence[Prediction], every: Sequence[Prediction]) -> list[str]:
    """Markdown: each execution's prediction, then what cannot be built and why."""
    lines = [
        "# Fidelity, row by row",
        "",
        "Written by `python -m benchmarks.fidelity_report`; [what it means](fidelity.md).",
        "",
        "| target | kernel | quantity | predicted | measured | error | held out |",
        "|---|---|---|---:|---:|---:|---|",
    ]
    for p in built:
        row = p.measurement
        lines.append(
            f"| {row.target} | {_label(row)} | {row.quantity.replace('_', ' ')} | "
            f"{_value(p.predicted, row)} | {_value(row.value, row)} | {p.error:+.1%} | "
            f"{'yes' if row.is_held_out else ''} |"
        )
    reasons: dict[tuple[str, str, str], int] = {}
    for p in every:
        if p.reason:
            key = (p.measurement.target, p.measurement.kernel, p.reason)
            reasons[key] = reasons.get(key, 0) + 1
    lines += ["", "## Not predicted", "", "| target | kernel | rows | reason |", "|---|---|---:|---|"]
    lines += [
        f"| {target} | {kernel} | {count} | {why} |" for (target, kernel, why), count in reasons.items()
    ]
    return lines


def _axes(decades: Iterable[int], at: Callable[[float], float]) -> list[str]:
    parts = []

    for decade in decades:
        place = at(10.0**decade)
        end = MARGIN + SIZE
        text = _time(10.0**decade)
        parts.append(f'<line x1="{place:.1f}" y1="{MARGIN}" x2="{place:.1f}" y2="{end}" stroke="#eee"/>')
        parts.append(
            f'<line x1="{MARGIN}" y1="{_flip(place):.1f}" x2="{end}" y2="{_flip(place):.1f}" stroke="#eee"/>'
        )
        parts.append(f'<text x="{place:.1f}" y="{end + 18}" text-anchor="middle">{text}</text>')
        parts.append(f'<text x="{MARGIN - 6}" y="{_flip(place) + 4:.1f}" text-anchor="end">{text}</text>')
    middle = MARGIN + SIZE / 2
    parts.append(f'<text x="{middle}" y="{2 * MARGIN + SIZE - 14}" text-anchor="middle">measured</text>')
    parts.append(
        f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">predicted</text>'
    )
    return parts


def _legend() -> list[str]:
    parts = []
    for index, (target, colour) in enumerate(COLOURS.items()):
        y = MARGIN + 16 + 18 * index
        parts.append(f'<circle cx="{MARGIN + 14}" cy="{y - 4}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{MARGIN + 24}" y="{y}">{target}</text>')
    return parts


def _flip(place: float) -> float:
    return 2 * MARGIN + SIZE - place


def _label(row: Measurement) -> str:
    return " ".join([row.kernel, *(f"{name}={value}" for name, value in row.parameters.items()), row.dtype])


def _value(value: float, row: Measurement) -> str:
    if row.unit == "ns":
        return _time(value)
    scale, name = (1e12, "TFLOP/s") if row.unit == "FLOP/s" else (1e9, "GB/s")
    return f"{value / scale:.4g} {name}"


def _time(nanoseconds: float) -> str:
    name, scale = next((unit for unit in UNITS if nanoseconds >= unit[1]), UNITS[-1])
    return f"{nanoseconds / scale:.4g} {name}"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs"))
