"""The builder turns dependencies into the fewest semaphore waits that order everything."""

import numpy as np
import pytest

from neuron_tools.records.program import (
    DMA_DTYPE,
    INSTRUCTION_DTYPE,
    Engine,
    Memory,
    Opcode,
    Purpose,
    QueueKind,
    empty_table,
)
from neuron_tools.simulator.builder import ProgramBuilder, dma_token
from neuron_tools.simulator.errors import ProgramError


def step(build, engine, after=(), **columns):
    return build.instruction(Engine[engine], Opcode.NOP, after=after, **columns)


def load(build, queue, after=()):
    return build.dma(
        queue, source_memory=Memory.HBM, destination_memory=Memory.SBUF, bytes=512 * 128,
        descriptor_bytes=512, partitions=128, after=after,
    )  # fmt: skip


def waits_of(program, row):
    instruction = program.instructions[row]
    first = instruction["first_wait"]
    rows = program.waits[first : first + instruction["wait_count"]]
    return [(int(wait["semaphore"]), int(wait["value"])) for wait in rows]


def test_a_dependency_between_engines_becomes_one_signal_and_one_wait():
    build = ProgramBuilder("pair")
    first = step(build, "VECTOR")
    second = step(build, "SCALAR", after=[first])
    program = build.finish()
    assert program.semaphore_count == 1
    assert program.instructions["signal"].tolist() == [0, -1]
    assert waits_of(program, second) == [(0, 1)]


def test_a_dependency_within_an_engine_costs_nothing():
    build = ProgramBuilder("same")
    step(build, "VECTOR", after=[step(build, "VECTOR"), -1])
    program = build.finish()
    assert len(program.waits) == 0
    assert program.semaphore_count == 0


def test_a_wait_implied_by_an_earlier_wait_of_the_engine_is_left_out():
    build = ProgramBuilder("implied")
    producers = [step(build, "VECTOR") for _ in range(3)]
    first = step(build, "SCALAR", after=[producers[2]])
    second = step(build, "SCALAR", after=[producers[0], producers[1]])
    program = build.finish()
    assert waits_of(program, first) == [(0, 1)]
    assert waits_of(program, second) == []
    assert program.instructions["signal"].tolist() == [-1, -1, 0, -1, -1]


def test_a_wait_implied_through_another_engine_is_left_out():
    build = ProgramBuilder("transitive")
    a = step(build, "VECTOR")
    b = step(build, "SCALAR", after=[a])
    c = step(build, "TENSOR", after=[a, b])
    program = build.finish()
    assert len(waits_of(program, c)) == 1
    assert len(program.waits) == 2


def test_a_completed_dma_implies_what_its_trigger_waited_for():
    build = ProgramBuilder("through a dma")
    queue = build.queue("qSyncIo0", Engine.SYNC)
    a = step(build, "VECTOR")
    loaded = load(build, queue, after=[a])
    c = step(build, "TENSOR", after=[loaded, a])
    program = build.finish()
    assert len(waits_of(program, c)) == 1
    assert program.dmas["increment"].tolist() == [1]


def test_a_trigger_does_not_imply_that_its_own_engine_is_done():
    build = ProgramBuilder("not implied")
    queue = build.queue("qVectorIo0", Engine.VECTOR)
    a = step(build, "VECTOR")
    loaded = load(build, queue)
    c = step(build, "TENSOR", after=[loaded, a])
    assert len(waits_of(build.finish(), c)) == 2


def test_dmas_of_one_queue_count_up_one_semaphore_in_trigger_order():
    build = ProgramBuilder("queue")
    queue = build.queue("qSyncIo0", Engine.SYNC)
    loads = [load(build, queue) for _ in range(3)]
    users = [step(build, "VECTOR", after=[token]) for token in loads]
    program = build.finish()
    assert program.dmas["semaphore"].tolist() == [0, 0, 0]
    assert [waits_of(program, row) for row in users] == [[(0, 1)], [(0, 2)], [(0, 3)]]


def test_block_appends_equal_single_appends():
    single, block = ProgramBuilder("program"), ProgramBuilder("program")
    queues = [build.queue("qSyncIo0", Engine.SYNC, QueueKind.DATA) for build in (single, block)]
    token = load(single, queues[0])
    for engine in ("VECTOR", "SCALAR", "VECTOR"):
        step(single, engine, after=[token])
    rows = empty_table(INSTRUCTION_DTYPE, 4)
    rows["engine"] = [Engine.SYNC, Engine.VECTOR, Engine.SCALAR, Engine.VECTOR]
    rows["opcode"][0] = Opcode.DMA_TRIGGER
    rows["dma"][0] = 0
    dmas = empty_table(DMA_DTYPE, 1)
    dmas["queue"] = queues[1]
    dmas["source_memory"], dmas["destination_memory"] = Memory.HBM, Memory.SBUF
    dmas["purpose"] = Purpose.INTERMEDIATE
    dmas["bytes"], dmas["descriptor_bytes"], dmas["descriptors"], dmas["partitions"] = 65536, 512, 128, 128
    first_dma = block.dma_count
    first = block.instructions(rows, dmas=dmas)
    block.depend(first + np.arange(1, 4), dma_token(first_dma))
    one, other = single.finish(), block.finish()
    for name in ("instructions", "dmas", "waits"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert one.semaphore_count == other.semaphore_count


def test_tiles_know_their_first_and_last_use():
    build = ProgramBuilder("tiles")
    used, idle = build.tile(Memory.SBUF, 0, 64), build.tile(Memory.SBUF, 64, 64)
    step(build, "VECTOR")
    step(build, "VECTOR", destination=used)
    step(build, "SCALAR", source=used)
    program = build.finish()
    assert program.tiles["first_use"].tolist() == [1, -1]
    assert program.tiles["last_use"][used] == 2
    assert program.tiles["last_use"][idle] == -1


def test_explicit_waits_and_signals_stand_beside_dependencies():
    build = ProgramBuilder("explicit")
    semaphore = build.semaphore()
    first = step(build, "GPSIMD", signal=semaphore)
    second = step(build, "VECTOR")
    third = step(build, "SCALAR", after=[second], waits=[(semaphore, 1)])
    program = build.finish()
    assert program.instructions["signal"][first] == semaphore
    assert sorted(waits_of(program, third)) == [(0, 1), (1, 1)]


def test_a_producer_with_its_own_semaphore_is_refused():
    build = ProgramBuilder("both")
    first = step(build, "GPSIMD", signal=build.semaphore())
    step(build, "VECTOR", after=[first])
    with pytest.raises(ProgramError, match="semaphore of its own"):
        build.finish()


@pytest.mark.parametrize("token", [1, 7, dma_token(0)])
def test_a_dependency_on_what_does_not_come_before_is_refused(token):
    build = ProgramBuilder("forward")
    step(build, "VECTOR")
    step(build, "SCALAR", after=[token])
    with pytest.raises(ProgramError, match="does not come before"):
        build.finish()


def test_a_dependency_on_a_dma_triggered_later_is_refused():
    build = ProgramBuilder("late")
    queue = build.queue("qSyncIo0", Engine.SYNC)
    first = step(build, "VECTOR")
    token = load(build, queue)
    build.depend([first], [token])
    with pytest.raises(ProgramError, match="not triggered before"):
        build.finish()


def test_names_get_one_row_each():
    build = ProgramBuilder("names")
    assert build.queue("q", Engine.SYNC) == build.queue("q", Engine.SYNC)
    assert build.activation("") == 0
    assert build.activation("gelu") == build.activation("gelu") == 1
    build.instruction(Engine.SCALAR, Opcode.ACTIVATE, activation="exp")
    build.warning("slow")
    build.warning("slow")
    program = build.finish()
    assert program.activations == ("", "gelu", "exp")
    assert program.warnings == ("slow",)
    assert program.instructions["activation"].tolist() == [2]


def test_what_is_removed_is_waited_for_no_more():
    build = ProgramBuilder("removed")
    queue = build.queue("q", Engine.SYNC)
    dropped, kept = (
        build.dma(
            queue, source_memory=Memory.HBM, destination_memory=Memory.SBUF, bytes=size, descriptor_bytes=size
        )
        for size in (64, 128)
    )  # fmt: skip
    first = build.instruction(Engine.VECTOR, Opcode.TENSOR_COPY, after=[dropped, kept])
    build.instruction(Engine.SCALAR, Opcode.ACTIVATE, after=[first, dropped])
    build.remove(np.array([0]))
    program = build.finish()
    assert program.dmas["bytes"].tolist() == [128]
    assert program.instructions["opcode"].tolist() == [
        Opcode.DMA_TRIGGER,
        Opcode.TENSOR_COPY,
        Opcode.ACTIVATE,
    ]
    assert program.instructions["dma"].tolist() == [0, -1, -1]
    assert program.instructions["wait_count"].tolist() == [0, 1, 1]
    assert len(program.waits) == 2
