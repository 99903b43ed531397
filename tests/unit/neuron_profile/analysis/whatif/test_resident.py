"""A kernel that loads the same again and again is played with what it loads staying in SBUF."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from neuron_profile.analysis.whatif.kernel_lines import KernelLines, ProgramWithLines
from neuron_profile.analysis.whatif.resident import with_resident_tensors
from neuron_tools import hardware
from neuron_tools.records.program import DType, Engine, Memory, Opcode, Program, QueueKind, TensorKind
from neuron_tools.simulator import ProgramBuilder, simulate
from neuron_tools.simulator.cost_scale import CostScale

CORE = hardware.get("trn2")
TILES, TILE_BYTES, PLACES = 12, 16384, 6
FACTORS = np.array([False, True, False])
ON_CHIP = {"source_memory": Memory.SBUF, "destination_memory": Memory.SBUF}


def kernel(again: bool = True, in_place: bool = False, factor_bytes: int = TILE_BYTES) -> Program:
    """Each tile is loaded, multiplied by a factor and stored; factors are loaded for each tile, or once.

    Args:
        in_place: The product is written over the factor.
        factor_bytes: What each load of the factor takes of it.
    """
    builder = ProgramBuilder("scale")
    loads = [builder.queue(f"in{each}", Engine.SYNC, QueueKind.HARDWARE_DYNAMIC) for each in range(2)]
    stores = [builder.queue(f"out{each}", Engine.GPSIMD, QueueKind.HARDWARE_DYNAMIC) for each in range(2)]
    shape = (128, TILE_BYTES // 4)
    data = builder.tensor("data", TensorKind.INPUT, DType.F32, (128 * TILES, shape[1]))
    factors = builder.tensor("factors", TensorKind.INPUT, DType.F32, shape)
    result = builder.tensor("result", TensorKind.OUTPUT, DType.F32, (128 * TILES, shape[1]))
    issued = {"load": 0, "store": 0}

    def moved(kind, tile, tensor, after=(), size=TILE_BYTES):
        queue = (loads if kind == "load" else stores)[issued[kind] % 2]
        issued[kind] += 1
        memory = (Memory.HBM, Memory.SBUF) if kind == "load" else (Memory.SBUF, Memory.HBM)
        return builder.dma(
            queue, source_memory=memory[0], destination_memory=memory[1], bytes=size * 128,
            descriptor_bytes=size, partitions=128, tile=tile, tensor=tensor, after=after,
        )  # fmt: skip

    freed = [[] for _ in range(PLACES)]
    for number in range(TILES):
        place = number % PLACES
        tile = builder.tile(Memory.SBUF, TILE_BYTES * 2 * place, TILE_BYTES)
        came = moved("load", tile, data, freed[place])
        if again or not number:
            factor = builder.tile(Memory.SBUF, TILE_BYTES * (2 * place + 1), TILE_BYTES)
            loaded = moved("load", factor, factors, freed[place], factor_bytes)
        product = builder.instruction(
            Engine.VECTOR, Opcode.TENSOR_TENSOR, partitions=128, elements=TILE_BYTES // 4, source=tile,
            second_source=factor, destination=factor if in_place else tile, input_dtype=DType.F32,
            output_dtype=DType.F32, after=[came, loaded], **ON_CHIP,
        )  # fmt: skip
        freed[place] = [moved("store", factor if in_place else tile, result, [product])]
    return with_lines(builder.finish())


def with_lines(program: Program) -> Program:
    columns = {each.name: getattr(program, each.name) for each in fields(Program)}
    here = [np.zeros(len(table), np.int64) for table in (program.instructions, program.dmas)]
    return ProgramWithLines(**columns, lines=KernelLines((("kernel.py", 7),), *here))


def resident(program: Program) -> tuple[Program, CostScale] | None:
    return with_resident_tensors(program, CORE, CostScale.unchanged(program), FACTORS)


def duration_ps(program: Program) -> int:
    return int(simulate(program, CORE).duration_ps)


def test_what_is_loaded_again_is_gone_and_all_else_remains():
    program = kernel()
    changed, scale = resident(program)
    assert len(changed.dmas) == len(program.dmas) - (TILES - 1)
    assert len(changed.instructions) == len(program.instructions) - (TILES - 1)
    assert scale.is_unchanged
    assert np.count_nonzero(changed.dmas["tensor"] == 1) == 1


def test_it_takes_less_time_than_loading_again_and_more_than_moving_the_rest():
    program = kernel()
    changed, _ = resident(program)
    assert duration_ps(changed) < duration_ps(program)
    assert duration_ps(changed) > duration_ps(program) * len(changed.dmas) / len(program.dmas) / 2


def test_the_transfers_that_remain_take_turns_at_the_queues():
    changed, _ = resident(kernel())
    moved = changed.instructions["dma"][changed.instructions["dma"] >= 0]
    loads = moved[changed.dmas["destination_memory"][moved] == int(Memory.SBUF)]
    assert changed.dmas["queue"][loads].tolist() == [number % 2 for number in range(TILES + 1)]


@pytest.mark.parametrize(
    "details", [{"in_place": True}, {"factor_bytes": TILE_BYTES * 3 // 4}, {"again": False}]
)
def test_what_cannot_stay_or_is_not_loaded_again_is_left_alone(details):
    assert resident(kernel(**details)) is None
