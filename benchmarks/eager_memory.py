"""Captures a training loop of small eager operations and says whether the recorder or the assembler grows.

    python -m benchmarks.eager_memory --operations 20M

The loop tells how far it is; at each of a hundred marks the private memory of every process of the capture is
read. What counts is by how much the means of the tenths behind the first, in which all is compiled, differ.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from statistics import mean

import psutil

from benchmarks.figures import Figure, Target
from benchmarks.synthetic_profile import parse_count
from neuron_tools.profile.reader import open_profile

MARKS = 100
OPERATIONS_PER_TURN = 6
PROGRAM = """
import sys, torch
marks, turns = map(int, sys.argv[1:])
x = torch.ones(8, 8, device="neuron")
w = torch.ones(8, 8, device="neuron", requires_grad=True)
for mark in range(marks):
    for _ in range(turns):
        torch.relu(x * w).sum().backward()
        w.grad = None
    print(mark, flush=True)
"""
RECORDER, ASSEMBLER = "recorder", "assembler"


def measure(operations: int, folder: Path) -> list[Figure]:
    """How much each process of a capture grows, in MiB.

    Args:
        operations: Eager operations to run at least.
        folder: Where the profile is written; it stays there.
    """
    script, output = folder / "loop.py", folder / "loop.nprof"
    script.write_text(PROGRAM)
    turns = max(1, -(-operations // (MARKS * OPERATIONS_PER_TURN)))
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "-o", str(output), "--", sys.executable]
    with subprocess.Popen(
        [*command, str(script), str(MARKS), str(turns)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as capture:
        assert capture.stdout is not None
        readings = [_reading(capture.pid, int(line) + 1) for line in islice(capture.stdout, MARKS)]
        behind = []
        while capture.poll() is None:
            behind.append(_private_bytes(capture.pid)[ASSEMBLER] / 2**20)
            with suppress(subprocess.TimeoutExpired):
                capture.wait(1)
    with open_profile(output) as profile:
        ran = profile.tables()["ExecutionInfo"]
    most = Figure(f"{ASSEMBLER}: most while it finishes", max(behind, default=0.0), "MiB")
    return [*_figures(readings, ran), most]


def _reading(capture: int, mark: int) -> dict[str, int]:
    found = _private_bytes(capture)
    sizes = ", ".join(f"{kind} {size / 2**20:.0f} MiB" for kind, size in found.items())
    print(f"{mark} of {MARKS}: {sizes}", file=sys.stderr, flush=True)
    return found


def _private_bytes(capture: int) -> dict[str, int]:
    """Private memory of the program that is recorded, and of all else that belongs to the capture."""
    found = {RECORDER: 0, ASSEMBLER: 0}
    root = psutil.Process(capture)
    for process in [root, *root.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            memory = process.memory_info()
            kind = RECORDER if "loop.py" in " ".join(process.cmdline()[:3]) else ASSEMBLER
            found[kind] += memory.rss - memory.shared
    return found


def _figures(readings: list[dict[str, int]], ran: int) -> Iterator[Figure]:
    tenth = MARKS // 10
    for kind in (RECORDER, ASSEMBLER):
        sizes = [reading[kind] / 2**20 for reading in readings]
        means = [mean(sizes[first : first + tenth]) for first in range(tenth, MARKS, tenth)]
        middle, most = (max(means) + min(means)) / 2, (max(means) - min(means)) / 2
        note = f"about {middle:.0f} MiB; {ran:,} executions"
        yield Figure(f"{kind}: private memory differs by", most, "MiB", Target("<=", 50), note=note)


def main() -> None:
    """Measure from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=parse_count, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="neuron-eager-") as folder:
        for figure in measure(options.operations, Path(folder)):
            print(f"{figure.name}: {figure.value:.1f} {figure.unit} ({figure.note})")


if __name__ == "__main__":
    main()
