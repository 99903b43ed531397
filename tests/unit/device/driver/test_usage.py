"""What an execution adds to a core's counters, against what its simulation says."""

import dataclasses

import numpy as np
import pytest

from neuron_tools.device.driver.usage import COUNTERS, executable_usage
from neuron_tools.records.program import Engine
from tests.unit.capture.programs import fused_executable


def counters(throttle_end_ps: int) -> dict[str, int]:
    """Of one execution, in which the Tensor engine has half of its rate until then."""
    executable = fused_executable()
    table = executable.simulation.throttle.copy()
    table["duration_ps"][0] = table["start_ps"][1] = throttle_end_ps
    table["duration_ps"][1] = executable.simulation.duration_ps - throttle_end_ps
    simulation = dataclasses.replace(executable.simulation, throttle=table)
    usage = executable_usage("step", 5_000, executable.program, simulation)
    return dict(zip(COUNTERS, usage.counters[0].tolist()))


def test_an_engine_is_busy_while_its_instructions_run() -> None:
    executable = fused_executable()
    rows = executable.program.instructions["engine"] == Engine.TENSOR
    times = executable.simulation.start_ps[rows], executable.simulation.end_ps[rows]
    assert counters(3_000_000)["tensor"] == (max(times[1]) - min(times[0])) // 1000 > 0


@pytest.mark.parametrize("part", [0.0, 0.25, 1.0])
def test_the_tensor_engine_is_slowed_down_only_while_it_works(part: float) -> None:
    executable = fused_executable()
    rows = executable.program.instructions["engine"] == Engine.TENSOR
    first, last = executable.simulation.start_ps[rows].min(), executable.simulation.end_ps[rows].max()
    until = int(np.round(first + part * (last - first)))
    assert counters(until)["throttled_ns"] == pytest.approx(until // 1000 - first // 1000, abs=1)
