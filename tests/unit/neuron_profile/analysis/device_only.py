"""A profile of the device alone, as AWS's profiler gives it: instructions and their dependencies, no host."""

from __future__ import annotations

from pathlib import Path

import neuron_tools
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.writer import ProfileWriter

ROWS = [  # id, engine, opcode, start, end
    (11, "Sync", "DMA_TRIGGER", 10, 12),
    (12, "Tensor", "MATMUL", 50, 80),
    (13, "Tensor", "MATMUL", 80, 100),
    (14, "Vector", "TENSOR_COPY", 110, 130),
    (15, "Scalar", "ACTIVATE", 60, 70),
]
FLOWS = [(11, 12), (13, 14), (12, 15)]


def open_device_profile(folder: Path) -> Profile:
    """The profile, opened."""
    return neuron_tools.open_profile(write_device_profile(folder, ROWS))


def write_device_profile(folder: Path, rows: list[tuple[int, str, str, int, int]]) -> Path:
    """A profile of such rows."""
    path = folder / "device.nprof"
    writer = ProfileWriter(path, {"target": "trn2"})
    ids, engines, opcodes, starts, ends = map(list, zip(*rows))
    count = len(rows)
    writer.append(
        "Instruction",
        {
            "id": ids, "engine": engines, "opcode": opcodes, "start_ts": starts, "end_ts": ends,
            "duration_ns": [end - start for start, end in zip(starts, ends)], "operands": [""] * count,
            "pc": list(range(count)), "bir_id": [""] * count, "pcore_idx": [0] * count,
        },
    )  # fmt: skip
    before, after = map(list, zip(*FLOWS))
    tables = ["Instruction"] * len(FLOWS)
    writer.append("Flow", {"in_id": before, "out_id": after, "in_table": tables, "out_table": tables})
    writer.close(True)
    return path
