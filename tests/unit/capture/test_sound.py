"""Executables of a log whose tables do not fit each other are refused before anything reads them."""

from dataclasses import replace

import numpy as np
import pytest

from neuron_tools.capture.process_log import ProcessLog
from neuron_tools.capture.sound import check_executable
from neuron_tools.records.executable import ExecutableError
from neuron_tools.simulator.errors import ProgramError
from tests.unit.capture.logs import one_step, write_log
from tests.unit.capture.programs import fused_executable

EXECUTABLE = fused_executable()


def with_program(**tables):
    return replace(EXECUTABLE, program=replace(EXECUTABLE.program, **tables))


def with_simulation(**columns):
    return replace(EXECUTABLE, simulation=replace(EXECUTABLE.simulation, **columns))


def changed(table, column, value):
    rows = table.copy()
    rows[column][0] = value
    return rows


def first_of(times, value):
    others = times.copy()
    others[0] = value
    return others


PROGRAM, SIMULATION = EXECUTABLE.program, EXECUTABLE.simulation
BROKEN = {
    "a table of plain numbers": with_program(tiles=np.zeros(3)),
    "a table of two dimensions": with_program(instructions=PROGRAM.instructions.reshape(-1, 1)),
    "an engine that does not exist": with_program(instructions=changed(PROGRAM.instructions, "engine", 255)),
    "an operation that does not exist": with_program(instructions=changed(PROGRAM.instructions, "hlo", 99)),
    "a transfer of more than all memory": with_program(dmas=changed(PROGRAM.dmas, "bytes", (1 << 63) - 1)),
    "a transfer of fewer bytes than none": with_program(dmas=changed(PROGRAM.dmas, "bytes", -1)),
    "a time too few": with_simulation(end_ps=SIMULATION.end_ps[:-1]),
    "times that are no integers": with_simulation(start_ps=SIMULATION.start_ps.astype(np.float64)),
    "a DMA's time too many": with_simulation(dma_end_ps=np.append(SIMULATION.dma_end_ps, 0)),
    "a wait for what does not exist": with_simulation(
        wait_cause=np.full_like(SIMULATION.wait_cause, len(PROGRAM.instructions))
    ),
    "an end after all else": with_simulation(end_ps=first_of(SIMULATION.end_ps, 1 << 62)),
    "a DMA's end after all else": with_simulation(dma_end_ps=first_of(SIMULATION.dma_end_ps, (1 << 63) - 1)),
    "a start before all else": with_simulation(start_ps=first_of(SIMULATION.start_ps, -1)),
    "an end before its start": with_simulation(
        start_ps=first_of(SIMULATION.start_ps, SIMULATION.duration_ps)
    ),
    "throttling after all else": with_simulation(throttle=changed(SIMULATION.throttle, "start_ps", 1 << 62)),
    "a duration of years": with_simulation(duration_ps=(1 << 63) - 1),
    "throttling of another form": with_simulation(throttle=np.zeros(2)),
}


def test_what_was_written_is_sound():
    check_executable(EXECUTABLE)


@pytest.mark.parametrize("executable", BROKEN.values(), ids=BROKEN)
def test_what_does_not_fit_is_refused_in_a_sentence(executable):
    with pytest.raises((ExecutableError, ProgramError), match=r"\.$"):
        check_executable(executable)


def test_a_log_gives_no_executable_that_is_not_sound(tmp_path):
    log = ProcessLog(write_log(tmp_path / "log", one_step(), (BROKEN["an engine that does not exist"],)))
    log.read(1000)
    assert log.executable(EXECUTABLE.number) is None
