"""`python -m benchmarks.zoo.conformance_table`: what each architecture of `transformers` does on the device.

Each row is kept as soon as it is measured (`--keep FILE`), in a process of its own kind: where one ends that
process, the row says so and the others go on. `--page FILE` writes the table as a page of the documentation.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.zoo.architectures import ARCHITECTURES, Architecture, architecture
from benchmarks.zoo.conformance import NATIVE_SHARE, TOLERANCE, Conformance, conformance

MODES = ("eager", "compiled")
_HEAD = f"""# Architectures

Written by `python -m benchmarks.zoo.conformance_table --page docs/architectures.md`; do not edit.

Each architecture of `transformers` below, from a small configuration with random weights, takes a training
step (forward and backward) and, where it is made for that, generates a text, on the simulated trn2 and on the
CPU: eagerly, and compiled with `torch.compile`. *Difference* is the largest of loss, prediction and every
gradient, relative to the largest value of each ({TOLERANCE:g} is allowed in float32). *Native* is the part of
the device time in operations with a native lowering; the others are computed by the host and timed by the
movement of their bytes. *Tokens* says whether the generated ones are the CPU's.

"""
_HEADINGS = (
    "architecture",
    "what is its own",
    "mode",
    "difference",
    "tokens",
    "native",
    "device time",
    "what fails",
)


class KeptRows:
    """Rows in a file, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[tuple[str, str], Conformance]:
        """The rows by architecture and mode."""
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        rows = [Conformance(**json.loads(line)) for line in lines]
        return {(row.name, row.mode): row for row in rows}

    def add(self, row: Conformance) -> None:
        """Keep one more."""
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(row)) + "\n")


def main(arguments: Sequence[str]) -> int:
    """Measure the named architectures (all without names) and print them; 1 where one does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, default=Path("conformance.jsonl"), metavar="FILE")
    parser.add_argument("--page", type=Path, metavar="FILE")
    parser.add_argument("--here", action="store_true", help="measure in this process")
    parser.add_argument("names", nargs="*")
    chosen = parser.parse_args(arguments)
    kept = KeptRows(chosen.keep)
    wanted = [architecture(name) for name in chosen.names] or list(ARCHITECTURES)
    if chosen.here:
        _measure(wanted, kept)
        return 0
    _measure_in_children(wanted, kept)
    rows = kept.read()
    table = [(each, rows[each.name, mode]) for each in wanted for mode in MODES]
    for _, row in table:
        print(" | ".join(_cells(row)))
    if chosen.page:
        chosen.page.write_text(page(table))
    return int(not all(row.holds for _, row in table))


def _measure(wanted: Sequence[Architecture], kept: KeptRows) -> None:
    for each, mode in _missing(wanted, kept):
        try:
            row = conformance(each, compiled=mode == "compiled")
        except Exception as error:  # whatever a model raises is its row
            traceback.print_exc()
            row = Conformance(each.name, mode, f"{type(error).__name__}: {error}".splitlines()[0])
        print(" | ".join(_cells(row)), flush=True)
        kept.add(row)


def _measure_in_children(wanted: Sequence[Architecture], kept: KeptRows) -> None:
    """Measure what is missing; the row at which a child ends by itself says so."""
    while missing := _missing(wanted, kept):
        names = dict.fromkeys(each.name for each, _ in missing)
        command = [
            sys.executable,
            "-m",
            "benchmarks.zoo.conformance_table",
            "--here",
            "--keep",
            str(kept._path),
        ]
        status = subprocess.run([*command, *names], check=False).returncode
        left = _missing(wanted, kept)
        if status and left:
            each, mode = left[0]
            kept.add(Conformance(each.name, mode, f"the process ended with status {status}"))


def _missing(wanted: Sequence[Architecture], kept: KeptRows) -> list[tuple[Architecture, str]]:
    rows = kept.read()
    return [(each, mode) for mode in MODES for each in wanted if (each.name, mode) not in rows]


def page(table: Sequence[tuple[Architecture, Conformance]]) -> str:
    """The page of the documentation."""
    names = {each.name for each, _ in table}
    holding = {name for name in names if all(row.holds for _, row in table if row.name == name)}
    lines = [_line(_HEADINGS), _line(["---"] * len(_HEADINGS))]
    lines += [_line([f"`{each.model}`", each.trait, *_cells(row)[1:]]) for each, row in table]
    total = (
        f"**{len(holding)} of {len(names)} architectures run with the CPU's values and at least "
        f"{NATIVE_SHARE:.1%} of their device time native, eager and compiled.**\n\n"
    )
    return _HEAD + total + "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _cells(row: Conformance) -> tuple[str, ...]:
    if row.failure:
        return (row.name, row.mode, "", "", "", "", row.failure)
    tokens = {None: "", True: "equal", False: "**differ**"}[row.same_tokens]
    unlowered = ", ".join(f"`{name}`" for name in row.custom_calls)
    refused = f"{row.refused} refused" if row.refused else ""
    return (
        row.name,
        row.mode,
        f"{row.difference:.1e}",
        tokens,
        f"{row.native_share:.2%}",
        f"{row.device_us:,.0f} µs",
        "; ".join(part for part in (unlowered and f"custom: {unlowered}", refused) if part),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
