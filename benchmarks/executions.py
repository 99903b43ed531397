"""Rows of a profile that tell which programs ran, and when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.profile.writer import ProfileWriter
from neuron_tools.records.executable import Executable


def write_executions(
    writer: ProfileWriter,
    executables: Sequence[Executable],
    ran: Ints,
    start_ns: Ints,
    end_ns: Ints,
    core: Ints | None = None,
) -> None:
    """Append the tables ExecutionInfo and Executable of one process.

    Args:
        executables: The programs.
        ran: Place in `executables` of what each execution ran, (executions,).
        start_ns, end_ns: Its times.
        core: Its core; None = all on the first.
    """
    numbers = np.array([each.number for each in executables], np.int64)
    count, zero = len(ran), np.zeros(len(ran), np.int64)
    writer.append(
        "ExecutionInfo",
        {
            "execution_index": np.arange(count, dtype=np.int64), "executable_idx": numbers[ran],
            "execution_start_ts": start_ns, "execution_end_ts": end_ns, "process_idx": zero.astype(np.int32),
            "pcore_idx": zero if core is None else core, "neff_name": ["step"] * count,
            "num_subgraphs": zero + 1, "row_count": zero,
        },
    )  # fmt: skip
    writer.append(
        "Executable",
        {
            "executable_idx": numbers, "process_idx": [0] * len(executables),
            "name": [each.name for each in executables], "kind": [each.kind for each in executables],
            "instruction_count": [len(each.program.instructions) for each in executables],
            "duration_ns": [each.duration_ns for each in executables],
            "hlo_operation_count": [len(each.program.hlo) for each in executables],
            "execution_count": np.bincount(ran, minlength=len(executables)).tolist(),
        },
    )  # fmt: skip
