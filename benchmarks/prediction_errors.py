"""Writes how far predictions were off, row by row: what ranges of profiles are made from.

`python -m benchmarks.prediction_errors --keep rows.jsonl` takes the whole models from what
`python -m benchmarks.whole_models --keep rows.jsonl` kept, and predicts the kernels itself.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.fidelity import one_per_execution
from benchmarks.fidelity_kernels.measurement import measurements
from benchmarks.fidelity_kernels.prediction import predict
from benchmarks.whole_models import decoders, encoders
from neuron_tools.hardware import prediction_errors
from neuron_tools.hardware.prediction_errors import COLUMNS, Kind

Line = tuple[str, str, str, str]


def kernel_lines() -> Iterator[Line]:
    """Kernels rebuilt instruction by instruction, one time for each execution."""
    built = [prediction for prediction in predict(measurements()) if not prediction.reason]
    for found in one_per_execution(built):
        row = found.measurement
        if not row.source.startswith("github.com/allenkchau"):  # single instructions
            sizes = " ".join(f"{name}={size}" for name, size in row.parameters.items())
            name = f"{row.target} {row.kernel} {sizes} {row.quantity}"
            yield Kind.KERNEL.value, row.kernel, " ".join(name.split()), f"{1 + found.error:.4f}"


def model_lines(keep: Path) -> Iterator[Line]:
    """Whole models that were kept."""
    kept = [json.loads(line) for line in keep.read_text(encoding="utf-8").splitlines()]
    times = {item["row"]: item["time_ns"] for item in kept}
    for case in (*encoders(), *decoders()):
        if case.row.label in times:
            ratio = times[case.row.label] / case.measured_ns
            yield Kind.MODEL.value, case.row.model, case.row.label, f"{ratio:.4f}"


def main() -> None:
    """Write the data file again."""
    parser = argparse.ArgumentParser(description="Write how far predictions were off.")
    parser.add_argument("--keep", type=Path, required=True, help="what benchmarks.whole_models kept")
    lines = [*kernel_lines(), *model_lines(parser.parse_args().keep)]
    path = Path(prediction_errors.__file__).parent / "data" / "prediction_errors.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *lines])


if __name__ == "__main__":
    main()
