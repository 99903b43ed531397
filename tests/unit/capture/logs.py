"""Writes small capture logs, as a recorded process would."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuron_tools.capture.definitions import DefinitionsWriter
from neuron_tools.records.capture_log import EVENTS_FILE, RECORD_DTYPE, RecordKind
from neuron_tools.records.executable import Executable, save

STACKS = {1: [("train.py", 40, "step")], 2: [("net.py", 11, "forward"), ("train.py", 40, "step")]}
MODULES = {1: ("net", "Net"), 2: ("net.fc", "Linear")}
MUL = {"executable": 7, "name": 1}
NAMES = {1: "aten::mul", 2: "step", 3: "epoch\n1", 4: "AdamW.step"}


def record(kind: RecordKind, **columns: Any) -> np.ndarray:
    """One record; no sequence numbers and no device time unless given."""
    row = np.zeros(1, RECORD_DTYPE)
    row["kind"], row["thread"] = kind, 1
    row["sequence"] = row["forward_sequence"] = -1
    for name, value in columns.items():
        row[name] = value
    return row


def host(kind: RecordKind, start_ns: int, end_ns: int, **columns: Any) -> np.ndarray:
    """A record with host times."""
    return record(kind, host_start_ns=start_ns, host_end_ns=end_ns, **columns)


def both(kind: RecordKind, start_ns: int, device_start_ns: int, device_ns: int, **columns: Any) -> np.ndarray:
    """A record with 10 ns of host and some device time."""
    device = {"device_start_ns": device_start_ns, "device_end_ns": device_start_ns + device_ns}
    return host(kind, start_ns, start_ns + 10, **device, **columns)


def one_step(at_ns: int = 1_000) -> list[np.ndarray]:
    """A step: tensor in, a module's operation, its backward, a graph, tensor out, and the ranges around."""
    t = at_ns
    return [
        host(RecordKind.ALLOCATE, t, t, bytes=4_096, address=16),
        both(RecordKind.COPY_TO_DEVICE, t + 10, t + 20, 100, bytes=4_096, stack=1),
        both(
            RecordKind.OPERATION, t + 30, t + 200, 5_000, executable=7, stack=2, module=2, name=1, sequence=4
        ),
        host(RecordKind.MODULE_CALL, t + 25, t + 45, module=2, stack=1),
        both(
            RecordKind.OPERATION, t + 60, t + 5_300, 5_000, executable=7, name=1, forward_sequence=4, thread=2
        ),
        both(RecordKind.GRAPH, t + 80, t + 10_400, 5_000, executable=8, stack=1, name=2),
        host(RecordKind.RANGE, t + 100, t + 120, name=4, flags=1, stack=1),
        both(RecordKind.COPY_TO_HOST, t + 130, t + 15_500, 50, bytes=16, stack=1),
        host(RecordKind.FREE, t + 140, t + 140, bytes=4_096, address=16),
    ]


def write_log(
    directory: Path,
    records: Sequence[np.ndarray],
    executables: Sequence[Executable] = (),
    *,
    process: Mapping[str, Any] = {"process_id": 77},
    ended: bool = True,
) -> Path:
    """A process's log folder with everything the records refer to."""
    folder = directory / "executables"
    folder.mkdir(parents=True)
    definitions = DefinitionsWriter(directory)
    definitions.process(**process)
    for number, frames in STACKS.items():
        definitions.stack(number, frames)
    for number, (path, class_name) in MODULES.items():
        definitions.write("module", id=number, path=path, **{"class": class_name})
    for number, text in NAMES.items():
        definitions.name(number, text)
    for executable in executables:
        save(executable, folder / f"{executable.number:06d}.npz")
        definitions.write("executable", id=executable.number, file=f"executables/{executable.number:06d}.npz")
    (directory / EVENTS_FILE).write_bytes(b"".join(row.tobytes() for row in records))
    if ended:
        definitions.write("end", host_end_ns=0, record_count=len(records))
    definitions.close()
    return directory
