"""Kernels on several ranks: values of every collective, their transfers, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_tools import hardware
from neuron_tools.nki import collectives as ncc, isa as nisa, language as nl
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.kernel import jit
from neuron_tools.nki.lowering import lower
from neuron_tools.nki.ranks import run_ranks
from neuron_tools.nki.tracer import Recording
from neuron_tools.records.program import CollectiveKind
from neuron_tools.simulator import simulate

RANKS = 4
EVERY = [list(range(RANKS))]
SHAPE = (8, 16)


def through(call, shape=SHAPE):
    """A kernel that copies its argument to private HBM, lets `call` move it, and returns what arrived."""

    @jit
    def kernel(x):
        sent = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.hbm)
        received = nl.zeros(shape, dtype=x.dtype, buffer=nl.hbm)
        result = nl.ndarray(shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=sent, src=x)
        call([sent], [received])
        nisa.dma_copy(dst=result, src=received)
        return result

    return kernel


@pytest.fixture
def shards():
    return [np.random.default_rng(rank).standard_normal(SHAPE).astype(np.float32) for rank in range(RANKS)]


def outputs(kernel, shards):
    return [run.outputs for run in run_ranks(kernel, [(shard,) for shard in shards])]


def test_all_reduce(shards):
    kernel = through(lambda src, dst: ncc.all_reduce(src, dst, ncc.ReplicaGroup(EVERY), op=nl.maximum))
    for found in outputs(kernel, shards):
        np.testing.assert_array_equal(found, np.max(shards, 0))


def test_runs_keep_what_is_asked_for(shards):
    kernel = through(lambda src, dst: ncc.all_reduce(src, dst, ncc.ReplicaGroup(EVERY), op=nl.add))
    runs = run_ranks(kernel, [(shard,) for shard in shards], recording=Recording.CALLS)
    assert {(run.traces[0].row_count > 0, run.traces[0].noting_loops) for run in runs} == {(True, False)}


def test_groups_are_apart(shards):
    kernel = through(lambda src, dst: ncc.all_reduce(src, dst, ncc.ReplicaGroup([[0, 2], [1, 3]]), op=nl.add))
    found = outputs(kernel, shards)
    np.testing.assert_allclose(found[0], shards[0] + shards[2])
    np.testing.assert_allclose(found[3], shards[1] + shards[3])


def test_all_gather_joins_along_a_dimension(shards):
    kernel = through(
        lambda src, dst: ncc.all_gather(src, dst, ncc.ReplicaGroup(EVERY), collective_dim=1), (8, 64)
    )
    for found in outputs(kernel, shards):
        np.testing.assert_array_equal(found, np.concatenate(shards, 1))


def test_reduce_scatter_keeps_each_ranks_part(shards):
    kernel = through(
        lambda src, dst: ncc.reduce_scatter(src, dst, ncc.ReplicaGroup(EVERY), collective_dim=0, op=nl.add),
        (2, 16),
    )
    for rank, found in enumerate(outputs(kernel, shards)):
        np.testing.assert_allclose(found, np.sum(shards, 0)[2 * rank : 2 * rank + 2], rtol=1e-5, atol=1e-6)


def test_all_to_all_turns_parts_and_ranks(shards):
    kernel = through(lambda src, dst: ncc.all_to_all(src, dst, ncc.ReplicaGroup(EVERY), collective_dim=0))
    for rank, found in enumerate(outputs(kernel, shards)):
        np.testing.assert_array_equal(
            found, np.concatenate([shard[2 * rank : 2 * rank + 2] for shard in shards])
        )


def test_permute_leaves_ranks_alone_that_nobody_sends_to(shards):
    kernel = through(lambda src, dst: ncc.collective_permute(src, dst, [(0, 1), (1, 3)]))
    found = outputs(kernel, [shards[0], shards[1], shards[2], shards[3]])
    np.testing.assert_array_equal(found[1], shards[0])
    np.testing.assert_array_equal(found[3], shards[1])
    np.testing.assert_array_equal(found[0], 0)


def test_a_ring_passes_on_what_its_register_says(shards):
    group = ncc.ReplicaGroup(EVERY)

    @jit
    def ring(x):
        buffers = [nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.hbm) for _ in range(2)]
        result = nl.ndarray((RANKS, *x.shape), dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=buffers[0], src=x)
        for step in range(RANKS):
            now, following = buffers[step % 2], buffers[(step + 1) % 2]
            source = ncc.collective_permute_implicit_current_processing_rank_id(step, group)
            if step < RANKS - 1:
                ncc.collective_permute_implicit([[now]], [[following]], group)
            place = result.ap(
                [[x.shape[1], x.shape[0]], [1, x.shape[1]]], scalar_offset=source, indirect_dim=0
            )
            nisa.dma_copy(dst=place, src=now)
        return result

    for found in outputs(ring, shards):
        np.testing.assert_array_equal(found, np.stack(shards))


def test_the_rank_is_known(shards):
    @jit
    def whoami(x):
        result = nl.ndarray((RANKS, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=result, src=nl.zeros(result.shape, dtype=x.dtype, buffer=nl.sbuf))
        place = result.ap([[16, 1], [1, 16]], scalar_offset=ncc.rank_id(), indirect_dim=0)
        nisa.dma_copy(dst=place, src=x[0:1, :])
        return result

    for rank, found in enumerate(outputs(whoami, shards)):
        np.testing.assert_array_equal(found[rank], shards[rank][0])


def test_a_collective_is_a_part_in_the_program_and_takes_time(shards):
    kernel = through(lambda src, dst: ncc.all_reduce(src, dst, ncc.ReplicaGroup(EVERY), op=nl.add))
    trace = kernel.run(shards[0], values=False).traces[0]
    program = lower(trace, "sum").program
    (part,) = program.collectives
    assert (part.kind, part.group, part.byte_count) == (CollectiveKind.ALL_REDUCE, (0, 1, 2, 3), 8 * 16 * 4)
    alone = lower(through(lambda src, dst: ncc.all_reduce(src, dst, [[0]])).run(shards[0]).traces[0], "sum")
    core = hardware.get("trn2")
    assert simulate(program, core).duration_ps > simulate(alone.program, core).duration_ps


def test_values_need_the_other_ranks(shards):
    kernel = through(lambda src, dst: ncc.all_reduce(src, dst, ncc.ReplicaGroup(EVERY), op=nl.add))
    with pytest.raises(NkiValidationError, match=r"over 4 ranks needs the data of other ranks.*run_ranks"):
        kernel(shards[0])
    with pytest.raises(NkiValidationError, match=r"rank \d waits in a collective for rank 2"):
        run_ranks(kernel, [(shard,) for shard in shards[:2]])


def test_an_error_of_one_rank_ends_all(shards):
    @jit
    def fails(x):
        if int(ncc.rank_id().read()) == 1:
            nl.ndarray((129, 1), dtype=nl.float32, buffer=nl.sbuf)
        sent = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.hbm)
        nisa.dma_copy(dst=sent, src=x)
        ncc.all_reduce([sent], [sent], ncc.ReplicaGroup(EVERY))
        return sent

    with pytest.raises(NkiValidationError, match="129 partitions"):
        run_ranks(fails, [(shard,) for shard in shards])


def exchanging(call, size):
    """A kernel that gives its first argument and its metadata to `call`, over a destination of ones."""

    @jit
    def kernel(x, metadata):
        sent = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.hbm)
        counts = nl.ndarray(metadata.shape, dtype=metadata.dtype, buffer=nl.hbm)
        received = nl.full((size,), 1.0, dtype=x.dtype, buffer=nl.hbm)
        result = nl.ndarray((size,), dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=sent, src=x)
        nisa.dma_copy(dst=counts, src=metadata)
        call([sent], [received], counts)
        nisa.dma_copy(dst=result, src=received)
        return result

    return kernel


def run_exchange(kernel, metadata):
    inputs = [np.arange(10, dtype=np.float32) + 100 * rank for rank in range(RANKS)]
    return [run.outputs for run in run_ranks(kernel, list(zip(inputs, metadata)))]


def test_all_to_all_v_sends_every_rank_a_chunk_of_its_own_into_a_slot_per_sender():
    counts = np.array([[(rank + to) % 3 for to in range(RANKS)] for rank in range(RANKS)])
    starts = np.array([[2 * to for to in range(RANKS)] for _ in range(RANKS)])
    metadata = [np.stack([counts[rank], starts[rank]]).astype(np.uint32) for rank in range(RANKS)]
    group = ncc.ReplicaGroup(EVERY)
    kernel = exchanging(lambda src, dst, m: ncc.all_to_all_v(src, dst, group, m), 4 * RANKS)
    for me, found in enumerate(run_exchange(kernel, metadata)):
        want = np.ones(4 * RANKS, np.float32)
        for sender in range(RANKS):
            count = counts[sender, me]
            want[4 * sender : 4 * sender + count] = 100 * sender + 2 * me + np.arange(count)
        np.testing.assert_array_equal(found, want)


def test_all_to_all_v_packs_what_arrives_where_the_receiver_says():
    received = np.array([0, 2, 4, 6])
    metadata = [
        np.stack([np.full(RANKS, 2), np.full(RANKS, rank), np.full(RANKS, 2), received]).astype(np.uint32)
        for rank in range(RANKS)
    ]
    group = ncc.ReplicaGroup(EVERY)
    kernel = exchanging(
        lambda src, dst, m: ncc.all_to_all_v(src, dst, group, m, recv_counts_known=True, has_rdispls=True), 8
    )
    want = np.concatenate([100 * rank + rank + np.arange(2) for rank in range(RANKS)])
    for found in run_exchange(kernel, metadata):
        np.testing.assert_array_equal(found, want)


def test_all_gather_v_sends_one_chunk_to_all():
    metadata = [
        np.array([[rank, 9, 9, 9], [3, 9, 9, 9]], np.uint32) for rank in range(RANKS)
    ]  # only the first column counts
    kernel = exchanging(lambda src, dst, m: ncc.all_gather_v(src, dst, ncc.ReplicaGroup(EVERY), m), 4 * RANKS)
    want = np.ones((RANKS, 4), np.float32)
    for sender in range(RANKS):
        want[sender, :sender] = 100 * sender + 3 + np.arange(sender)
    for found in run_exchange(kernel, metadata):
        np.testing.assert_array_equal(found, want.reshape(-1))


def test_a_chunk_that_does_not_fit_is_refused():
    metadata = [np.array([[5] * RANKS, [0] * RANKS], np.uint32)] * RANKS
    kernel = exchanging(lambda src, dst, m: ncc.all_to_all_v(src, dst, ncc.ReplicaGroup(EVERY), m), 4 * RANKS)
    with pytest.raises(NkiValidationError, match=r"5 elements arrive from place 0 .* room .* is 4"):
        run_exchange(kernel, metadata)


def test_a_chunk_of_any_size_is_timed_alone():
    kernel = exchanging(lambda src, dst, m: ncc.all_to_all_v(src, dst, ncc.ReplicaGroup([[0]]), m), 16)
    done = kernel.run(np.arange(10, dtype=np.float32), np.array([[4], [1]], np.uint32))
    np.testing.assert_array_equal(done.outputs[:5], [1, 2, 3, 4, 1])
    lowered = lower(done.traces[0], "kernel")
    assert simulate(lowered.program, hardware.get("trn2")).duration_ps > 0


def test_all_gather_between_tiles_on_chip(shards):
    @jit
    def kernel(x):
        mine = nl.ndarray(SHAPE, dtype=x.dtype, buffer=nl.sbuf)
        every = nl.ndarray((SHAPE[0], SHAPE[1] * RANKS), dtype=x.dtype, buffer=nl.sbuf)
        result = nl.ndarray(every.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=mine, src=x)
        ncc.all_gather([mine], [every], ncc.ReplicaGroup(EVERY), collective_dim=1)
        nisa.dma_copy(dst=result, src=every)
        return result

    for run in run_ranks(kernel, [(shard,) for shard in shards]):
        np.testing.assert_array_equal(run.outputs, np.concatenate(shards, 1))
        lowered = lower(run.traces[0], "kernel")
        assert simulate(lowered.program, hardware.get("trn2")).duration_ps > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda src, dst, group: ncc.all_reduce(src, dst, group, op=nl.add), "all lie in HBM or all in SBUF"),
        (lambda src, dst, group: ncc.all_to_all(src, src, group, 0), "all_to_all moves tensors in HBM only"),
    ],
)
def test_memories_that_a_collective_cannot_reach_are_refused(call, message, shards):
    @jit
    def kernel(x):
        tile = nl.ndarray(SHAPE, dtype=x.dtype, buffer=nl.sbuf)
        other = nl.ndarray(SHAPE, dtype=x.dtype, buffer=nl.hbm)
        nisa.dma_copy(dst=tile, src=x)
        call([tile], [other], ncc.ReplicaGroup(EVERY))
        return other

    with pytest.raises(NkiValidationError, match=message):
        run_ranks(kernel, [(shard,) for shard in shards])


@pytest.mark.parametrize(
    ("op", "operand", "groups"),
    [
        (ncc.rg_partition_op.bitwise_and, 0, [[0, 1, 2, 3]]),
        (ncc.rg_partition_op.div, 2, [[0, 1], [2, 3]]),
        (ncc.rg_partition_op.mod, 2, [[0, 2], [1, 3]]),
    ],
)
def test_groups_from_a_partition_of_the_ranks(op, operand, groups):
    assert ncc.ReplicaGroup.from_partition_op(4, op, operand).groups == groups


def test_two_cores_of_each_rank_meet_the_same_core_of_the_others():
    """Core 1 takes part only after a barrier to which core 0 comes with its collective behind it."""

    @jit
    def kernel(x):
        core = nl.program_id(0)
        mine = nl.ndarray((8, 8), dtype=x.dtype, buffer=nl.sbuf)
        others = nl.ndarray((8, 8 * RANKS), dtype=x.dtype, buffer=nl.sbuf)
        result = nl.ndarray((2, 8, 8 * RANKS), dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=mine, src=x[:, core * 8 : core * 8 + 8])
        if core == 1:
            nisa.core_barrier(result, (0, 1))
        ncc.all_gather(dsts=[others], srcs=[mine], replica_group=ncc.ReplicaGroup(EVERY), collective_dim=1)
        if core == 0:
            nisa.core_barrier(result, (0, 1))
        nisa.dma_copy(dst=result[core], src=others)
        return result

    given = [np.random.default_rng(rank).standard_normal(SHAPE).astype(np.float32) for rank in range(RANKS)]
    runs = run_ranks(kernel[2], [(shard,) for shard in given])
    wanted = [np.concatenate([shard[:, half] for shard in given], 1) for half in (slice(0, 8), slice(8, 16))]
    for run in runs:
        np.testing.assert_array_equal(run.outputs, wanted)


def test_ranks_that_wait_for_each_other_are_told_apart_from_slow_ones():
    @jit
    def kernel(x):
        core = nl.program_id(0)
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        late = (int(core) + ncc.rank_id()) % 2
        if late:
            nisa.core_barrier(result, (0, 1))
        sent = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.hbm)
        nisa.dma_copy(dst=sent, src=x)
        ncc.all_reduce([sent], [sent], ncc.ReplicaGroup([[0, 1]]), op=nl.add)
        if not late:
            nisa.core_barrier(result, (0, 1))
        return result

    with pytest.raises(NkiValidationError, match="all ranks wait for one another"):
        run_ranks(kernel[2], [(np.ones(SHAPE, np.float32),) for _ in range(2)])
