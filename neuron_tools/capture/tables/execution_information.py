"""ExecutionInfo: which executable ran when, on each physical core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.executions import Execution
from neuron_tools.records.executable import Executable


class ExecutionInformation:
    """Builds the rows of one process, whose executions it numbers.

    Args:
        process_idx: Number of the process.
        logical_core_size: Physical cores of a NeuronCore.
    """

    def __init__(self, process_idx: int, logical_core_size: int) -> None:
        self._process_idx = process_idx
        self._logical_core_size = logical_core_size
        self._pools = TextPools()
        self._written = 0

    def rows(
        self, executions: Sequence[Execution], ends_ns: Sequence[int], executables: Mapping[int, Executable]
    ) -> dict[str, Any]:
        """A row for each physical core of each execution.

        Args:
            executions: The next ones, at least one.
            ends_ns: Device time at which each ended.
            executables: By number.
        """
        numbers = np.array([execution.executable for execution in executions], np.int64)
        distinct, kind = np.unique(numbers, return_inverse=True)
        ran = [executables[number] for number in distinct.tolist()]
        instructions = [len(program.instructions) for each in ran for program in each.program.of_cores]
        cores = np.array([len(each.program.of_cores) for each in ran], np.int64)
        row = np.repeat(np.arange(len(executions)), cores[kind])
        core = np.arange(len(row)) - (np.cumsum(cores[kind]) - cores[kind])[row]
        kind = kind[row]
        first_core = (
            np.array([execution.core for execution in executions], np.int64) * self._logical_core_size
        )
        columns = {
            "execution_index": self._written + row,
            "execution_start_ts": np.array([execution.start_ns for execution in executions], np.int64)[row],
            "execution_end_ts": np.array(ends_ns, np.int64)[row],
            "num_subgraphs": np.array([each.program.physical_cores for each in ran], np.int64)[kind],
            "row_count": np.array(instructions, np.int64)[(np.cumsum(cores) - cores)[kind] + core],
            "process_idx": np.full(len(row), self._process_idx, np.int64),
            "executable_idx": distinct[kind],
            "pcore_idx": first_core[row] + core,
        }
        self._written += len(executions)
        names = self._pools["neff_name"].codes(each.name for each in ran)[kind]
        return self._pools.table(columns, {"neff_name": names})
