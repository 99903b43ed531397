"""A kernel that spills is played again in tiles that fit."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from neuron_profile.analysis.whatif.fitting_tiles import with_fitting_tiles
from neuron_profile.analysis.whatif.kernel_lines import KernelLines, ProgramWithLines
from neuron_profile.analysis.whatif.spills import spills
from neuron_tools import hardware
from neuron_tools.records.program import DType, Engine, Memory, Opcode, Program, QueueKind, TensorKind
from neuron_tools.simulator import ProgramBuilder, simulate
from neuron_tools.simulator.cost_scale import CostScale

CORE = hardware.get("trn2")
PIECES, PIECE_BYTES = 64, 8192
ON_CHIP = {"source_memory": Memory.SBUF, "destination_memory": Memory.SBUF}


def kernel(reload_bytes: int = PIECE_BYTES, pieces: int = PIECES, open_engines: int = 0) -> Program:
    """Pieces are loaded, changed, spilled and summed; then each is loaded back, scaled and stored."""
    builder = ProgramBuilder("softmax")
    load = builder.queue("in", Engine.SYNC, QueueKind.HARDWARE_DYNAMIC)
    store = builder.queue("out", Engine.GPSIMD, QueueKind.HARDWARE_DYNAMIC)
    kinds = (TensorKind.INPUT, TensorKind.OUTPUT, TensorKind.INTERMEDIATE)
    data, result, kept = (builder.tensor(kind.name, kind, DType.F32, (128, 1 << 17)) for kind in kinds)
    total = builder.tile(Memory.SBUF, 200_000, 4)

    def moved(queue, tile, tensor, after=(), size=PIECE_BYTES):
        memory = (Memory.HBM, Memory.SBUF) if queue == load else (Memory.SBUF, Memory.HBM)
        return builder.dma(
            queue, source_memory=memory[0], destination_memory=memory[1], bytes=size * 128,
            descriptor_bytes=size, partitions=128, tile=tile, tensor=tensor, after=after,
        )  # fmt: skip

    def compute(engine, opcode, source, destination, after=(), second_source=-1):
        return builder.instruction(
            engine, opcode, partitions=128, elements=PIECE_BYTES // 4, input_dtype=DType.F32,
            output_dtype=DType.F32, source=source, second_source=second_source, destination=destination,
            after=after, **ON_CHIP,
        )  # fmt: skip

    saved, freed = [], [[] for _ in range(8)]
    for number in range(pieces):
        tile = builder.tile(Memory.SBUF, PIECE_BYTES * (number % 8), PIECE_BYTES)
        loaded = moved(load, tile, data, freed[number % 8])
        made = compute(Engine.SCALAR, Opcode.ACTIVATE, tile, tile, [loaded])
        added = compute(Engine.VECTOR, Opcode.TENSOR_REDUCE, tile, total, [made], total if number else -1)
        saved.append(moved(store, tile, kept, [made]))
        freed[number % 8] = [added, saved[-1]]
    for number in range(pieces):
        tile = builder.tile(Memory.SBUF, 80_000 + PIECE_BYTES * (number % 8), PIECE_BYTES)
        back = moved(load, tile, kept, [saved[number], *freed[number % 8]], reload_bytes)
        builder.instruction(
            Engine.VECTOR, Opcode.TENSOR_TENSOR, partitions=128, elements=PIECE_BYTES // 4, source=tile,
            second_source=total, destination=tile, input_dtype=DType.F32, output_dtype=DType.F32,
            open_engines=open_engines, after=[back], **ON_CHIP,
        )  # fmt: skip
        freed[number % 8] = [moved(store, tile, result, [builder.instruction_count - 1])]
    program = builder.finish()
    columns = {each.name: getattr(program, each.name) for each in fields(Program)}
    here = [np.zeros(len(table), np.int64) for table in (program.instructions, program.dmas)]
    return ProgramWithLines(**columns, lines=KernelLines((("kernel.py", 7),), *here))


def fitted(program: Program) -> tuple[Program, CostScale]:
    return with_fitting_tiles(program, CORE, CostScale.unchanged(program))


def duration_ps(program: Program, scale: CostScale | None = None) -> int:
    return int(simulate(program, CORE, scale=scale).duration_ps)


def test_what_is_spilled_is_moved_no_more_and_all_else_remains():
    program = kernel()
    changed, scale = fitted(program)
    assert not spills(changed).any()
    assert len(changed.dmas) == len(program.dmas) - 2 * PIECES
    assert len(changed.instructions) == len(program.instructions) - 2 * PIECES
    assert scale.is_unchanged


def test_it_takes_longer_than_spills_for_nothing_because_parts_wait_for_room():
    program = kernel()
    free = CostScale(np.ones(len(program.instructions)), np.where(spills(program), 0.0, 1.0))
    assert duration_ps(program, free) < duration_ps(*fitted(program)) < duration_ps(program)


def test_no_more_is_on_the_chip_than_has_room():
    changed, scale = fitted(kernel())
    times = simulate(changed, CORE, scale=scale)
    is_load = changed.dmas["destination_memory"] == int(Memory.SBUF)
    begins, ends = np.sort(times.dma_start_ps[is_load]), np.sort(times.dma_end_ps[~is_load])
    held = np.arange(1, PIECES + 1) - np.searchsorted(ends, begins, "right")
    assert held.max() * PIECE_BYTES <= CORE.sbuf_bytes_per_partition


def test_what_is_loaded_back_in_other_pieces_costs_nothing_instead():
    program = kernel(reload_bytes=PIECE_BYTES // 2)
    changed, scale = fitted(program)
    assert changed is program
    assert (scale.dmas[spills(program)] == 0).all()


def test_a_program_without_spills_stays_as_it_is():
    changed, _ = fitted(kernel())
    again, scale = fitted(changed)
    assert again is changed
    assert scale.is_unchanged


def test_a_sum_of_very_many_pieces_is_followed_back():
    program = kernel(pieces=1500)
    changed, scale = fitted(program)
    assert len(changed.dmas) == len(program.dmas) - 2 * 1500
    assert scale.is_unchanged


def test_an_engine_that_the_kernel_left_open_is_chosen_anew():
    changed, _ = fitted(kernel(open_engines=1 << Engine.VECTOR | 1 << Engine.SCALAR))
    on = changed.instructions["engine"][changed.instructions["open_engines"] > 0]
    assert len(on) == PIECES
    assert Engine.SCALAR in on


def test_an_engine_that_the_kernel_chose_stays():
    changed, _ = fitted(kernel())
    scaled = changed.instructions["opcode"] == Opcode.TENSOR_TENSOR
    assert set(changed.instructions["engine"][scaled].tolist()) == {Engine.VECTOR}
