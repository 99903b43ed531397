"""Whether an executable of a log is what was written: whatever it is used for next may trust its tables."""

from __future__ import annotations

import numpy as np

from neuron_tools.records.executable import Executable, ExecutableError
from neuron_tools.records.program import TABLE_DTYPES
from neuron_tools.records.simulation import THROTTLE_DTYPE, Simulation
from neuron_tools.simulator.whole import check_whole

_OF_INSTRUCTIONS = ("start_ps", "end_ps", "ready_ps", "wait_cause")
_OF_DMAS = ("dma_trigger_ps", "dma_start_ps", "dma_end_ps")
_START_AND_END = ("start_ps", "end_ps", "dma_start_ps", "dma_end_ps")
LATEST_PS = 1 << 61
"""Twenty-six days: half of what 64 bits hold, so that sums of times are times."""


def check_executable(executable: Executable) -> None:
    """Refuse an executable whose tables do not fit each other. Linear in its rows.

    Raises:
        ExecutableError: A table has another form, or a time belongs to no row.
        ProgramError: The Program is none.
    """
    if len(executable.program.of_cores) != len(executable.simulation.of_cores):
        raise _refused(executable, "one of its cores has no times")
    for each in executable.of_cores:
        _check_core(each)


def _check_core(executable: Executable) -> None:
    program, simulation = executable.program, executable.simulation
    for name, dtype in TABLE_DTYPES.items():
        table = getattr(program, name)
        if not _is_table(table) or table.dtype != dtype:
            raise _refused(executable, f"the table {name} is of another form")
    check_whole(program)
    rows, dmas = len(program.instructions), len(program.dmas)
    for names, count in ((_OF_INSTRUCTIONS, rows), (_OF_DMAS, dmas)):
        for name in names:
            times = getattr(simulation, name)
            if not _is_table(times) or len(times) != count or times.dtype.kind != "i":
                raise _refused(executable, f"{name} is of another form")
    _check_causes(executable, simulation, rows, dmas)
    if not _is_table(simulation.throttle) or simulation.throttle.dtype != THROTTLE_DTYPE:
        raise _refused(executable, "its throttling is of another form")
    _check_times(executable, simulation)


def _is_table(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1


def _check_causes(executable: Executable, simulation: Simulation, rows: int, dmas: int) -> None:
    causes = simulation.wait_cause
    if np.any((causes >= rows) | (causes < -1 - dmas)):
        raise _refused(executable, "an instruction waited for what does not exist")


def _check_times(executable: Executable, simulation: Simulation) -> None:
    """Refuse times beyond the duration: what samples the execution would take memory for all of them."""
    throttle = simulation.throttle["start_ps"], simulation.throttle["duration_ps"]
    times = (
        *(getattr(simulation, name) for name in (*_START_AND_END, "dma_trigger_ps", "ready_ps")),
        *throttle,
    )
    is_within = all(np.all((each >= 0) & (each <= simulation.duration_ps)) for each in times)
    if not is_within or simulation.duration_ps > LATEST_PS:
        raise _refused(executable, "a time lies before its start or after its end")
    starts_and_ends = (getattr(simulation, name) for name in _START_AND_END)
    if any(np.any(start > end) for start, end in zip(starts_and_ends, starts_and_ends)):
        raise _refused(executable, "something ends before it starts")


def _refused(executable: Executable, why: str) -> ExecutableError:
    return ExecutableError(f"The compiled computation {executable.name!r} is damaged: {why}.")
