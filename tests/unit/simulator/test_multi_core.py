"""Several cores on one clock: alone as apart, HBM shared by neighbours, collectives waiting for the last."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from neuron_tools import hardware
from neuron_tools.records.program import (
    Collective,
    CollectiveKind,
    DType,
    Engine,
    Frame,
    FrameworkOperation,
    HloOperation,
    Memory,
    Opcode,
    QueueKind,
    joined_cores,
)
from neuron_tools.simulator import ProgramBuilder, ProgramError, simulate, simulate_cores
from neuron_tools.simulator.collectives import cost
from tests.unit.simulator.programs import interleave, random_builder

TIMES = ("start_ps", "end_ps", "ready_ps", "wait_cause", "dma_trigger_ps", "dma_start_ps", "dma_end_ps")


def assert_same(first, second):
    for name in TIMES:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert first.duration_ps == second.duration_ps


def stream(target, tiles=200, row_bytes=4096):
    build = ProgramBuilder("stream", target)
    queue = build.queue("qSync0", Engine.SYNC, QueueKind.HARDWARE_DYNAMIC)
    for _ in range(tiles):
        build.dma(
            queue, source_memory=Memory.HBM, destination_memory=Memory.SBUF, bytes=128 * row_bytes,
            descriptor_bytes=row_bytes, partitions=128,
        )  # fmt: skip
    return build.finish()


def rank(work, group=(0, 1), byte_count=1 << 20, kind=CollectiveKind.ALL_REDUCE, times=1, name="step"):
    """A rank that computes for `work` elements, joins collectives, and goes on."""
    build = ProgramBuilder(name, "trn1")
    source = build.framework(FrameworkOperation("c10d::allreduce", stack=(Frame("train.py", 7),)))
    hlo = build.hlo(HloOperation("all_reduce.1", "all_reduce", (source,), (1.0,)))
    queue = build.queue("cc0", Engine.GPSIMD, QueueKind.COLLECTIVE)
    token = build.instruction(
        Engine.VECTOR, Opcode.TENSOR_COPY, partitions=128, elements=work, input_dtype=DType.F32,
        output_dtype=DType.F32,
    )  # fmt: skip
    for _ in range(times):
        token = build.collective(
            queue, Collective(kind, byte_count, group, name="grad"), hlo=hlo, after=[token]
        )
    build.instruction(Engine.SCALAR, Opcode.ACTIVATE, partitions=128, elements=1, after=[token])
    return build.finish()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_cores_that_share_nothing_run_as_if_alone(seed, other):
    device = hardware.device("trn2", lnc=1)
    programs = [random_builder(seed, 40).finish(), random_builder(other, 60).finish()]
    together = simulate_cores(programs, device, cores=(0, 5))
    for program, simulation in zip(programs, together, strict=True):
        assert_same(simulation, simulate(program, device.core))


def test_neighbours_share_their_hbm_and_others_do_not():
    device = hardware.device("trn2", lnc=2)
    program = stream("trn2")
    moved = program.dmas["bytes"].sum()
    alone = simulate(program, device.core).duration_ps
    near = simulate_cores([program, program], device, cores=(0, 1))
    far = simulate_cores([program, program], device, cores=(1, 2))
    assert near[0].duration_ps == near[1].duration_ps > alone
    assert 2 * moved / (near[0].duration_ps * 1e-12) <= device.core.hbm_bandwidth
    assert 2 * moved / (near[0].duration_ps * 1e-12) == pytest.approx(device.core.hbm_bandwidth, rel=0.02)
    assert [simulation.duration_ps for simulation in far] == [alone, alone]


def test_two_trn1_cores_read_twice_what_one_reads():
    # pantheonneuron: 272.98 GB/s on one core, 543.74 GB/s on both.
    device = hardware.device("trn1.2xlarge")
    program = stream("trn1")
    both = simulate_cores([program, program], device)
    moved = 2 * program.dmas["bytes"].sum()
    assert moved / (both[0].duration_ps * 1e-12) == pytest.approx(543.74e9, rel=0.05)


def test_a_collective_moves_when_the_last_rank_has_come():
    device = hardware.device("trn1.32xlarge")
    early, late = simulate_cores([rank(100), rank(60_000)], device)
    expected = cost(CollectiveKind.ALL_REDUCE, 1 << 20, (0, 1), device).duration_ns
    assert early.dma_trigger_ps[0] < late.dma_trigger_ps[0]
    assert early.dma_start_ps[0] == late.dma_start_ps[0] == late.dma_trigger_ps[0]
    assert early.dma_end_ps[0] == late.dma_end_ps[0]
    moved = late.dma_end_ps[0] - late.dma_start_ps[0]
    assert moved == pytest.approx(expected * 1000 + device.core.dma_semaphore_ns * 1000, abs=1000)


def test_a_rank_alone_finds_the_others_ready():
    device = hardware.device("trn1.32xlarge")
    alone = simulate(rank(100), device.core)
    together = simulate_cores([rank(100), rank(100)], device)
    assert_same(alone, together[0])
    assert_same(alone, together[1])


def test_one_rank_of_many_can_be_run():
    device = hardware.device("trn1.32xlarge")
    program = rank(100, group=tuple(range(32)))
    assert_same(simulate_cores([program], device, cores=[3])[0], simulate(program, device.core))


def test_cores_may_begin_at_different_times():
    device = hardware.device("trn1.32xlarge")
    early, late = simulate_cores([rank(100), rank(100)], device, starts_ps=(0, 5_000_000))
    assert late.start_ps.min() == 5_000_000
    assert early.dma_start_ps[0] == late.dma_start_ps[0] > 5_000_000


def test_groups_side_by_side_do_not_wait_for_each_other():
    device = hardware.device("trn1.32xlarge")
    programs = [rank(100, (0, 1)), rank(100, (0, 1)), rank(90_000, (2, 3)), rank(90_000, (2, 3))]
    times = simulate_cores(programs, device)
    assert times[0].dma_end_ps[0] < times[2].dma_start_ps[0]


def test_a_missing_rank_is_named_with_the_line():
    device = hardware.device("trn1.32xlarge")
    with pytest.raises(ProgramError, match=r"train\.py:7.*all_reduce 'grad' of ranks \[0, 1\]"):
        simulate_cores([rank(10, times=2), rank(10)], device)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"byte_count": 4}, "1048576 bytes, rank 1 all_reduce of 4"),
        ({"kind": CollectiveKind.ALL_GATHER}, "rank 1 all_gather"),
        ({"group": (2, 3)}, "to which it does not belong"),
    ],
)
def test_ranks_that_disagree_are_refused(change, words):
    device = hardware.device("trn1.32xlarge")
    with pytest.raises(ProgramError, match=words):
        simulate_cores([rank(10), rank(10, **change)], device)


def test_as_many_cores_as_programs_are_needed():
    with pytest.raises(ProgramError, match="2 Programs need as many different cores"):
        simulate_cores([rank(1), rank(1)], hardware.device("trn1"), cores=[0, 0])


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32))
def test_the_interleaving_of_engines_in_the_tables_does_not_matter(seed):
    device = hardware.device("trn2", lnc=2)
    programs = [random_builder(seed + core, 50).finish() for core in range(2)]
    shuffled = [interleave(program, seed) for program in programs]
    plain = simulate_cores(programs, device)
    mixed = simulate_cores([program for program, _ in shuffled], device)
    for one, other, (_, new_row) in zip(plain, mixed, shuffled, strict=True):
        np.testing.assert_array_equal(one.start_ps, other.start_ps[new_row])
        np.testing.assert_array_equal(one.dma_end_ps, other.dma_end_ps)


def meeting_core(work, name="half"):
    """A core that computes for `work` elements, meets the other one, and goes on."""
    build = ProgramBuilder(name, "trn2")
    queue = build.queue("barrier", Engine.GPSIMD, QueueKind.INSTRUCTION)
    done = build.instruction(
        Engine.VECTOR, Opcode.TENSOR_COPY, partitions=128, elements=work, input_dtype=DType.F32,
        output_dtype=DType.F32,
    )  # fmt: skip
    met = build.core_barrier(queue, after=[done])
    build.instruction(Engine.SCALAR, Opcode.ACTIVATE, partitions=128, elements=1, after=[met])
    return build.finish()


def test_the_cores_of_a_logical_one_wait_for_the_slower():
    device = hardware.device("trn2", lnc=2)
    quick, slow = meeting_core(64), meeting_core(64_000)
    times = simulate_cores([quick, slow], device)
    assert times[0].start_ps[-1] > times[1].dma_end_ps[0] > times[1].end_ps[0]
    assert times[1].start_ps[-1] < times[1].dma_end_ps[0]
    assert simulate(quick, device.core).start_ps[-1] < times[1].end_ps[0]


def test_a_pair_is_timed_as_its_cores_side_by_side():
    device = hardware.device("trn2", lnc=2)
    programs = [meeting_core(64), meeting_core(64_000, "other")]
    together = simulate_cores(programs, device)
    pair = simulate(joined_cores(programs), device.core)
    for one, other in zip(pair.of_cores, together, strict=True):
        np.testing.assert_array_equal(one.end_ps, other.end_ps)
        np.testing.assert_array_equal(one.wait_cause, other.wait_cause)
    assert pair.duration_ps == max(each.duration_ps for each in together)


def test_cores_of_different_logical_ones_do_not_meet():
    device = hardware.device("trn2", lnc=2)
    quick, slow = meeting_core(64), meeting_core(64_000)
    times = simulate_cores([quick, slow], device, cores=(0, 2))
    assert_same(times[0], simulate(quick, device.core))


def busy_rank(kind, byte_count=64 << 20, group=tuple(range(16))):
    """A core that streams from HBM while a collective moves."""
    build = ProgramBuilder("busy", "trn2")
    stream_queue = build.queue("qSync0", Engine.SYNC, QueueKind.HARDWARE_DYNAMIC)
    collective_queue = build.queue("cc0", Engine.GPSIMD, QueueKind.COLLECTIVE)
    if kind is not None:
        build.collective(collective_queue, Collective(kind, byte_count, group))
    for _ in range(100):
        build.dma(
            stream_queue, source_memory=Memory.HBM, destination_memory=Memory.SBUF, bytes=1 << 20,
            descriptor_bytes=8192, partitions=128,
        )  # fmt: skip
    return build.finish()


def streamed_ps(program, core):
    times = simulate(program, core)
    return int(times.dma_end_ps[program.dmas["collective"] < 0].max())


def test_transfers_give_way_to_a_collective_that_moves_beside_them():
    core = hardware.get("trn2", lnc=1)
    alone = streamed_ps(busy_rank(None), core)
    beside = streamed_ps(busy_rank(CollectiveKind.ALL_REDUCE), core)
    assert alone * 1.05 < beside < alone * 2
    assert streamed_ps(busy_rank(CollectiveKind.BARRIER), core) == alone


def test_a_collective_takes_of_the_memory_that_it_reads_and_writes():
    """Memory that has no more bandwidth than transfers ask for: what the collective touches is missing."""
    core = hardware.get("trn2", lnc=1)
    scarce = core.replace(hbm_bandwidth=core.dma_bandwidth * 0.5)
    alone, beside = (streamed_ps(busy_rank(kind), scarce) for kind in (None, CollectiveKind.ALL_REDUCE))
    engines_alone, engines_beside = (
        streamed_ps(busy_rank(kind), core) for kind in (None, CollectiveKind.ALL_REDUCE)
    )
    assert beside / alone > engines_beside / engines_alone
