"""The Tensor engine's limit goes on where the last execution left it."""

import numpy as np
import pytest

from neuron_tools import hardware
from neuron_tools.records.program import DType, Engine, Memory, Opcode
from neuron_tools.records.simulation import ThrottleState
from neuron_tools.simulator import ProgramBuilder, simulate
from neuron_tools.simulator.simulation import after_idle


def matmuls(count, target="trn2"):
    build = ProgramBuilder("matmuls", target)
    for _ in range(count):
        build.instruction(
            Engine.TENSOR, Opcode.MATMUL, partitions=128, columns=128, elements=512, input_dtype=DType.BF16,
            source_memory=Memory.SBUF, destination_memory=Memory.PSUM,
        )  # fmt: skip
    return build.finish()


def test_two_halves_take_as_long_as_the_whole():
    core = hardware.get("trn2")
    whole = simulate(matmuls(400), core)
    first = simulate(matmuls(200), core)
    second = simulate(matmuls(200), core, first.throttle_state)
    assert first.throttle["k"].tolist() == [4, 8]
    assert second.throttle["k"].tolist() == [8]
    drain = first.duration_ps - first.start_ps[-1]
    assert first.duration_ps + second.duration_ps == pytest.approx(whole.duration_ps + drain, rel=0.01)


def test_a_pause_brings_the_limit_back():
    core = hardware.get("trn2")
    state = simulate(matmuls(200), core).throttle_state
    short = after_idle(state, 100_000, core)
    long = after_idle(state, 20_000_000, core)
    assert short.k == 8
    assert long == ThrottleState(long.left_ps, core.throttle_idle, 0)
    assert simulate(matmuls(50), core, long).throttle["k"][0] == 4


def test_a_core_at_rest_starts_as_without_a_state():
    core = hardware.get("trn2")
    fresh = ThrottleState(round(core.throttle_window_ns * 1000), core.throttle_initial, 0)
    np.testing.assert_array_equal(
        simulate(matmuls(100), core, fresh).start_ps, simulate(matmuls(100), core).start_ps
    )


def test_sustained_limits_hold_from_the_first_cycle_of_the_next_execution():
    core = hardware.get("inf2")
    first = simulate(matmuls(200, "inf2"), core)
    second = simulate(matmuls(200, "inf2"), core, first.throttle_state)
    assert first.throttle["k"].tolist() == [8, 5]
    assert second.throttle["k"].tolist() == [5]
    assert second.duration_ps > first.duration_ps
