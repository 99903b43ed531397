"""A compiled artifact as tables for a person."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from neuron_profile.reports.quantities import scaled
from neuron_profile.reports.tables import data_table
from neuron_tools.neff import Neff

MOST_LINES = 10


def print_artifact(console: Console, neff: Neff) -> None:
    """Print facts, tensors, instructions per engine, and the source lines with most HLO operations."""
    manifest = neff.manifest
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in _facts(neff, manifest):
        facts.add_row(name, Text(value))
    console.print(facts)
    for headings, rows in (
        (("Tensor", "Type", "Kind"), _tensors(manifest)),
        (("Engine", "Instructions"), _engines(manifest)),
        (("Line", "HLO operations", "Text"), _lines(neff)),
    ):
        if rows:
            console.print()
            console.print(data_table(headings, rows, right=(1,)))


def _facts(neff: Neff, manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "Computation", manifest["name"]
    yield "Compiled for", manifest["target"]
    yield "Written by", manifest["producer"]
    options = ", ".join(f"{name} {value}" for name, value in manifest["compiler_options"].items())
    if options:
        yield "Options", options
    yield "HLO operations", f"{manifest['hlo_operations']:,}"
    yield "Model FLOPs", f"{manifest['model_flops']:,}"
    moved = manifest["hbm_bytes"]
    yield "HBM traffic", f"{scaled(moved['read'], 'B')} read, {scaled(moved['written'], 'B')} written"
    if neff.weights:
        yield "Weights", scaled(sum(map(len, neff.weights)), "B")
    if neff.attachments:
        yield (
            "Attachments",
            ", ".join(f"{name} ({scaled(len(data), 'B')})" for name, data in neff.attachments.items()),
        )
    for warning in manifest["warnings"]:
        yield "Warning", warning


def _tensors(manifest: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (tensor["name"], f"{tensor['dtype']}[{','.join(map(str, tensor['shape']))}]", kind.removesuffix("s"))
        for kind in ("inputs", "weights", "outputs")
        for tensor in manifest[kind]
    ]


def _engines(manifest: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [(engine, f"{count:,}") for engine, count in manifest["instructions"].items()]


def _lines(neff: Neff) -> list[tuple[str, ...]]:
    """The innermost lines of the operations, by how many HLO operations came from each."""
    framework = neff.program.framework
    counts: Counter[tuple[str, int]] = Counter()
    for operation in neff.program.hlo:
        stack = framework[operation.framework[0]].stack if operation.framework else ()
        if stack:
            counts[stack[0].file, stack[0].line] += 1
    return [
        (f"{os.path.basename(file)}:{line}", f"{count:,}", neff.sources.get(file, {}).get(line, "").strip())
        for (file, line), count in counts.most_common(MOST_LINES)
    ]
