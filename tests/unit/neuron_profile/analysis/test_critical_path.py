import pytest
from hypothesis import given, settings, strategies as st

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.critical_path import find_critical_path, program_path
from neuron_tools.simulator import simulate
from tests.unit.neuron_profile.small_capture import (
    CORE,
    DISPATCH_NS,
    LAUNCH_NS,
    Step,
    elementwise,
    loads,
    open_capture,
    products,
    program,
)
from tests.unit.simulator.programs import random_builder

TENSOR = program([("matmul", 4)], products(300))
IN_TURN = program([("load", 7)], loads(8, 4096, after_each=True))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), steps=st.integers(1, 60))
def test_the_path_of_a_program_is_as_long_as_the_program(seed, steps):
    each = random_builder(seed, steps).finish()
    simulation = simulate(each, CORE)
    path = program_path(each, simulation)
    assert sum(path.values()) == int(simulation.duration_ps)
    assert all(length >= 0 for length in path.values())


def test_one_engine_alone_is_the_path():
    path = program_path(TENSOR, simulate(TENSOR, CORE))
    assert max(path, key=path.get)[0] == "Tensor"
    assert path["Tensor", 0] > 0.99 * sum(path.values())


def test_transfers_and_work_in_turn_are_both_on_the_path():
    path = program_path(IN_TURN, simulate(IN_TURN, CORE))
    assert path["DMA", 0] > 0
    assert path["Vector", 0] > 0


def test_the_path_of_a_capture_adds_up_with_host_and_launches(tmp_path):
    with open_capture(tmp_path, [TENSOR], [Step(0, wait_line=5)] * 4) as profile:
        path = find_critical_path(Context(profile))
    assert sum(entry.path_ns for entry in path.entries) == pytest.approx(path.total_ns)
    by_resource = {entry.resource: entry for entry in path.entries}
    assert by_resource["launch"].path_ns == 3 * LAUNCH_NS
    assert by_resource["host"].path_ns == 3 * DISPATCH_NS
    assert (by_resource["Tensor"].operation, by_resource["Tensor"].line) == ("matmul", 4)


def test_work_that_overlaps_is_not_on_the_path():
    both = program(
        [("matmul", 4), ("add", 5)],
        lambda builder, hlo: (products(300)(builder, hlo[:1]), elementwise(3)(builder, hlo[1:])),
    )
    path = program_path(both, simulate(both, CORE))
    assert ("Vector", 1) not in path
