"""The compiled kernel equals the plain-Python reference and keeps the rules of time."""

import numpy as np
from hypothesis import given, settings, strategies as st

from neuron_tools import hardware
from neuron_tools.simulator.simulation import simulate

from .programs import interleave, programs, random_builder
from .reference_simulator import reference_simulate

TARGETS = ("trn1", "trn2", "trn3", "inf1", "inf2")
relaxed = settings(max_examples=25, deadline=None)


def own_ports(core):
    """The core with a memory port for every engine: sharing them has tests of its own."""
    return core.replace(vector_gpsimd_sbuf_port=0, vector_scalar_psum_port=0)


def assert_equal_to_reference(program, core):
    result = simulate(program, core)
    start, end, ready, cause, trigger, dma_start, dma_end = reference_simulate(program, core)
    rows, dmas = range(len(program.instructions)), range(len(program.dmas))
    assert result.ready_ps.tolist() == [ready[row] for row in rows]
    assert result.start_ps.tolist() == [start[row] for row in rows]
    assert result.end_ps.tolist() == [end[row] for row in rows]
    assert result.dma_trigger_ps.tolist() == [trigger[dma] for dma in dmas]
    assert result.dma_start_ps.tolist() == [dma_start[dma] for dma in dmas]
    assert result.dma_end_ps.tolist() == [dma_end[dma] for dma in dmas]
    assert result.wait_cause.tolist() == [cause[row] for row in rows]


@given(program=programs(), target=st.sampled_from(TARGETS))
@relaxed
def test_kernel_equals_the_plain_python_reference(program, target):
    assert_equal_to_reference(program, own_ports(hardware.get(target)))


@given(seed=st.integers(0, 1000), outstanding=st.integers(1, 3))
@relaxed
def test_kernel_equals_the_reference_when_dma_queues_are_full(seed, outstanding):
    program = random_builder(seed, 40, dma_share=0.8).finish()
    assert_equal_to_reference(
        program, own_ports(hardware.get("trn2")).replace(dma_outstanding_per_queue=outstanding)
    )


@given(seed=st.integers(0, 1000))
@relaxed
def test_kernel_equals_the_reference_when_hbm_is_slow(seed):
    program = random_builder(seed, 30, dma_share=0.8).finish()
    assert_equal_to_reference(program, own_ports(hardware.get("trn2")).replace(hbm_bandwidth=50e9))


@given(seed=st.integers(0, 1000), window_ns=st.floats(1.0, 5000.0), busy=st.integers(1, 8))
@relaxed
def test_kernel_equals_the_reference_under_any_throttling(seed, window_ns, busy):
    core = own_ports(hardware.get("trn2")).replace(throttle_window_ns=window_ns, throttle_busy=busy)
    assert_equal_to_reference(random_builder(seed, 60, dma_share=0.05).finish(), core)


@given(program=programs(), seed=st.integers(0, 100))
@relaxed
def test_interleaving_of_engines_changes_no_time(program, seed):
    core = hardware.get("trn2")
    other, new_row = interleave(program, seed)
    first, second = simulate(program, core), simulate(other, core)
    for name in ("start_ps", "end_ps", "ready_ps"):
        assert np.array_equal(getattr(first, name), getattr(second, name)[new_row])
    for name in ("dma_trigger_ps", "dma_start_ps", "dma_end_ps", "throttle"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
    cause, moved = first.wait_cause, second.wait_cause[new_row]
    assert np.array_equal(np.where(cause >= 0, new_row[np.maximum(cause, 0)], cause), moved)


@given(program=programs())
@relaxed
def test_every_instruction_starts_after_its_waits_and_engines_keep_their_order(program):
    core = hardware.get("trn2")
    result = simulate(program, core)
    assert np.all(result.ready_ps >= 0)
    assert np.all(result.start_ps >= result.ready_ps)
    assert np.all(result.end_ps >= result.start_ps)
    for engine in range(5):
        starts = result.start_ps[program.instructions["engine"] == engine]
        assert np.all(np.diff(starts) >= 0)
    for row, instruction in enumerate(program.instructions):
        first = instruction["first_wait"]
        for wait in program.waits[first : first + instruction["wait_count"]]:
            producers = np.flatnonzero(program.instructions["signal"] == wait["semaphore"])
            loads = np.flatnonzero(program.dmas["semaphore"] == wait["semaphore"])
            done = sorted([*result.end_ps[producers], *result.dma_end_ps[loads]])
            assert done[wait["value"] - 1] <= result.start_ps[row]


@given(program=programs())
@relaxed
def test_a_cause_ends_before_what_it_releases(program):
    result = simulate(program, own_ports(hardware.get("trn2")))
    waited = result.start_ps > result.ready_ps
    assert np.array_equal(waited, result.wait_cause != -1)
    for row in np.flatnonzero(waited):
        cause = result.wait_cause[row]
        finish = result.end_ps[cause] if cause >= 0 else result.dma_end_ps[-2 - cause]
        margin = 0 if cause >= 0 else 9_000  # a full queue is released by the last byte, before the semaphore
        assert finish <= result.start_ps[row] + margin


@given(seed=st.integers(0, 1000), steps=st.integers(1, 40))
@relaxed
def test_dependencies_of_the_builder_hold_in_time(seed, steps):
    build = random_builder(seed, steps)
    edges = list(zip(build._edge_rows, build._edge_tokens))
    program = build.finish()
    result = simulate(program, hardware.get("trn2"))
    for row, token in edges:
        if token >= 0:
            same_engine = program.instructions["engine"][row] == program.instructions["engine"][token]
            assert same_engine or result.end_ps[token] <= result.start_ps[row]
        else:
            assert result.dma_end_ps[-2 - token] <= result.start_ps[row]


@given(program=programs())
@relaxed
def test_dmas_of_a_queue_run_one_after_another(program):
    result = simulate(program, hardware.get("trn2"))
    for queue in range(len(program.queues)):
        rows = np.flatnonzero(program.dmas["queue"] == queue)
        rows = rows[np.argsort(result.dma_trigger_ps[rows], kind="stable")]
        assert np.all(np.diff(result.dma_end_ps[rows]) >= 0)
        assert np.all(result.dma_start_ps[rows] > result.dma_trigger_ps[rows])
