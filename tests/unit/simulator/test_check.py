"""Programs that no core could run are refused with one sentence naming the instruction and its line."""

from dataclasses import replace

import pytest

from neuron_tools import hardware
from neuron_tools.records.program import (
    READ_COLUMNS,
    DType,
    Engine,
    Frame,
    FrameworkOperation,
    HloOperation,
    Memory,
    Opcode,
    QueueKind,
    TensorKind,
)
from neuron_tools.simulator.builder import ProgramBuilder
from neuron_tools.simulator.check import check
from neuron_tools.simulator.errors import ProgramError
from neuron_tools.simulator.simulation import simulate

CORE = hardware.get("trn2")


def build_with_source():
    build = ProgramBuilder("broken")
    framework = build.framework(FrameworkOperation("aten::add", stack=(Frame("model.py", 31, "forward"),)))
    hlo = build.hlo(HloOperation("add.1", "add", (framework,), (1.0,)))
    return build, hlo


def refusal(program, core=CORE):
    with pytest.raises(ProgramError) as error:
        check(program, core)
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def vector(build, hlo=-1, **columns):
    return build.instruction(
        Engine.VECTOR, Opcode.TENSOR_COPY, partitions=128, elements=8, hlo=hlo, **columns
    )


def test_a_sound_program_passes():
    build, hlo = build_with_source()
    tile = build.tile(Memory.SBUF, 0, 1024, start_partition=32, partitions=32)
    vector(build, hlo, source=tile)
    check(build.finish(), CORE)


def test_a_deadlock_names_the_held_instruction_its_line_and_the_semaphore():
    build, hlo = build_with_source()
    first, second = build.semaphore(), build.semaphore()
    vector(build, hlo, waits=[(second, 1)], signal=first)
    build.instruction(Engine.SCALAR, Opcode.ACTIVATE, waits=[(first, 1)], signal=second)
    program = build.finish()
    message = refusal(program)
    assert "deadlocks" in message
    assert "instruction 0 (Vector TENSOR_COPY, model.py:31)" in message
    assert "semaphore 1 to reach 1, but it stays at 0" in message
    assert "2 of 5 engines are held" in message
    with pytest.raises(ProgramError, match="deadlocks"):
        simulate(program, CORE)


def test_a_wait_for_more_signals_than_there_are_deadlocks():
    build, hlo = build_with_source()
    semaphore = build.semaphore()
    build.instruction(Engine.SCALAR, Opcode.NOP, signal=semaphore)
    vector(build, hlo, waits=[(semaphore, 2)])
    assert "stays at 1" in refusal(build.finish())


def test_an_undefined_semaphore_is_refused():
    build, hlo = build_with_source()
    vector(build, hlo, waits=[(5, 1)])
    message = refusal(build.finish())
    assert "waits for an undefined semaphore" in message
    assert "model.py:31" in message


@pytest.mark.parametrize(
    ("memory", "address", "size", "start", "partitions", "fault"),
    [
        (Memory.SBUF, 229376 - 10, 20, 0, 128, "does not fit"),
        (Memory.PSUM, 16384 - 10, 20, 0, 128, "does not fit"),
        (Memory.SBUF, 0, 4, 64, 65, "128 partitions"),
        (Memory.SBUF, 0, 4, 0, 0, "128 partitions"),
        (Memory.SBUF, 0, 4, 32, 64, "none may start"),
        (Memory.SBUF, 0, 4, 16, 16, "none may start"),
        (Memory.SBUF, -4, 4, 0, 128, "negative"),
    ],
)
def test_an_illegal_tile_is_refused_with_its_user(memory, address, size, start, partitions, fault):
    build, hlo = build_with_source()
    tile = build.tile(memory, address, size, start, partitions)
    vector(build, hlo, destination=tile)
    message = refusal(build.finish())
    assert fault in message
    assert "used by instruction 0 (Vector TENSOR_COPY, model.py:31)" in message


def test_the_same_tile_may_fit_another_generation():
    build, hlo = build_with_source()
    vector(build, hlo, destination=build.tile(Memory.SBUF, 0, 230_000))
    program = build.finish()
    assert "does not fit" in refusal(program)
    check(program, hardware.get("trn3"))


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"columns": 129, "elements": 8}, "stationary columns"),
        ({"columns": 8, "elements": 513}, "moving columns"),
        ({"columns": 8, "elements": 8, "partitions": 129}, "partitions"),
        ({"columns": 8, "elements": -1}, "negative"),
    ],
)
def test_an_illegal_matmul_is_refused(columns, fault):
    build, hlo = build_with_source()
    build.instruction(Engine.TENSOR, Opcode.MATMUL, hlo=hlo, **columns)
    assert fault in refusal(build.finish())


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"engine": 99}, "runs on an engine"),
        ({"opcode": 999}, "has an opcode"),
        ({"wait_count": 1, "first_wait": 0}, "waits on a missing wait row"),
        ({"wait_count": 1, "first_wait": -1}, "waits on a missing wait row"),
        ({"opcode": Opcode.DMA_TRIGGER}, "is a DMA trigger without a DMA"),
        ({"dma": 99}, "starts a DMA"),
        ({"hlo": 99}, "belongs to an HLO operation"),
        ({"hlo": -2}, "belongs to an HLO operation"),
        ({"signal": 99}, "signals a semaphore"),
        *(({column: 99}, "reads a tile") for column in READ_COLUMNS),
        ({"destination": 99}, "writes a tile"),
        ({"activation": 99}, "applies an activation"),
    ],
)
def test_a_reference_to_nothing_is_refused(columns, fault):
    build, _ = build_with_source()
    vector(build)
    vector(build)
    program = build.finish()
    for column, value in columns.items():
        program.instructions[column][1] = value
    message = refusal(program)
    assert "instruction 1 (" in message
    assert fault in message


def dma(build, queue, **columns):
    return build.dma(
        queue, source_memory=Memory.HBM, destination_memory=Memory.SBUF, bytes=512, descriptor_bytes=512,
        **columns,
    )  # fmt: skip


def test_dmas_must_be_started_once_by_the_engine_of_their_queue():
    build, hlo = build_with_source()
    queue = build.queue("qSyncIo0", Engine.SYNC)
    dma(build, queue, hlo=hlo)
    program = build.finish()
    foreign = replace(program, instructions=program.instructions.copy())
    foreign.instructions["engine"] = Engine.SCALAR
    assert "queue of another engine" in refusal(foreign)
    idle = replace(program, instructions=program.instructions[:0])
    assert "DMA 0 is never started" in refusal(idle)
    twice = replace(program, instructions=program.instructions[[0, 0]])
    assert "another instruction starts" in refusal(twice)


def test_tensors_must_fit_hbm():
    build, _ = build_with_source()
    build.tensor("weights", TensorKind.WEIGHT, DType.BF16, (1 << 20, 1 << 15))
    message = refusal(build.finish())
    assert "HBM" in message
    assert "'weights'" in message


def load(build, hlo, **columns):
    queue = build.queue("qSync0", Engine.SYNC, QueueKind.HARDWARE_DYNAMIC)
    return build.dma(
        queue, source_memory=Memory.HBM, destination_memory=Memory.SBUF, bytes=128 * 512,
        descriptor_bytes=512, partitions=128, hlo=hlo, **columns,
    )  # fmt: skip


def test_a_tile_that_only_a_load_fills_is_refused_with_the_loads_line():
    build, hlo = build_with_source()
    load(build, hlo, tile=build.tile(Memory.SBUF, CORE.sbuf_bytes_per_partition - 8, 512))
    message = refusal(build.finish())
    assert "does not fit" in message
    assert "DMA_TRIGGER, model.py:31" in message


def test_what_does_not_fit_hbm_is_named_with_the_line_that_moves_it():
    build, hlo = build_with_source()
    load(build, hlo, tensor=build.tensor("cache", TensorKind.INPUT, DType.F32, (1 << 20, 1 << 15)))
    assert "'cache'" in refusal(build.finish())
    assert "moved by instruction 0 (Sync DMA_TRIGGER, model.py:31)" in refusal(build.finish())


def test_an_empty_program_takes_no_time():
    assert simulate(ProgramBuilder("empty").finish(), CORE).duration_ps == 0
