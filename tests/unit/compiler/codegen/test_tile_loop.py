"""The loop's pipeline: stages, buffers and the order it guarantees, seen in the Program it makes."""

from collections.abc import Sequence

import numpy as np
import pytest

from neuron_tools.compiler.allocate import OutOfOnChipMemory
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.repeat import EMITTERS
from neuron_tools.compiler.codegen.slot import Transfer
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.compiler.passes.fusion import fuse
from neuron_tools.records.program import DType, Engine, HloOperation, Memory, Opcode, Purpose
from neuron_tools.simulator.builder import ProgramBuilder
from neuron_tools.simulator.simulation import simulate
from tests.unit.compiler.modules import CORE, module, unary


@pytest.fixture
def context():
    plan = fuse(module(unary("tanh", "tensor<4xf32>")))
    built = Context(plan, ProgramBuilder("loop", "trn2"), CORE, CompilerOptions(), EMITTERS)
    built.builder.hlo(HloOperation("loop", "fusion", (), ()))
    return built


def transfer(context, *, load: bool, size: int = 128 * 2048) -> Transfer:
    queue = context.load_queue() if load else context.store_queue()
    memories = (Memory.HBM, Memory.SBUF) if load else (Memory.SBUF, Memory.HBM)
    return Transfer(queue, *memories, size, 2048, 128, Purpose.INPUT, DType.F32)


def load_compute_store(context, iterations: int, bytes_per_partition: int = 2048) -> TileLoop:
    loop = TileLoop(context, iterations, 0)
    tile = loop.slot("tile", bytes_per_partition, DType.F32)
    result = loop.slot("result", bytes_per_partition, DType.F32)
    loop.load(tile, transfer(context, load=True))
    loop.step(Engine.VECTOR, Opcode.TENSOR_COPY, reads=(tile,), writes=(result,), elements=512)
    loop.store(result, transfer(context, load=False))
    return loop


def test_work_starts_after_its_load_and_stores_after_their_work(context):
    load_compute_store(context, 6).emit()
    program = context.builder.finish()
    times = simulate(program, CORE)
    copies = np.flatnonzero(program.instructions["opcode"] == Opcode.TENSOR_COPY)
    loads, stores = (
        np.flatnonzero(program.dmas["destination_memory"] == Memory.SBUF),
        np.flatnonzero(program.dmas["destination_memory"] == Memory.HBM),
    )
    assert np.all(times.start_ps[copies] >= times.dma_end_ps[loads])
    assert np.all(times.dma_start_ps[stores] >= times.end_ps[copies])


def test_a_buffer_is_refilled_only_after_its_last_reader(context):
    load_compute_store(context, 12).emit()
    program = context.builder.finish()
    times = simulate(program, CORE)
    copies = np.flatnonzero(program.instructions["opcode"] == Opcode.TENSOR_COPY)
    loads = np.flatnonzero(program.dmas["destination_memory"] == Memory.SBUF)
    tiles = program.dmas["tile"][loads]
    for tile in np.unique(tiles):
        users = np.flatnonzero(tiles == tile)
        assert np.all(times.dma_start_ps[loads[users[1:]]] >= times.end_ps[copies[users[:-1]]])


def test_loads_run_ahead_of_the_work(context):
    load_compute_store(context, 8).emit()
    program = context.builder.finish()
    times = simulate(program, CORE)
    alone = times.dma_end_ps[0] - times.dma_trigger_ps[0]
    assert times.duration_ps < 8 * alone


def test_unpipelined_single_buffers_are_the_last_resort_and_then_it_is_refused(context):
    share = CORE.sbuf_bytes_per_partition
    load_compute_store(context, 4, share // 3).emit()
    assert context.sbuf.free_bytes == share
    with pytest.raises(OutOfOnChipMemory):
        load_compute_store(context, 4, share).emit()
    assert context.sbuf.free_bytes == share


def chain(context, engines: Sequence[Engine], bytes_per_partition: int) -> TileLoop:
    """A tile that is loaded, goes from engine to engine, and is stored."""
    loop = TileLoop(context, 6, 0)
    tile = loop.slot("tile", bytes_per_partition, DType.F32)
    loop.load(tile, transfer(context, load=True, size=128 * bytes_per_partition))
    for engine in engines:
        made = loop.slot("made", bytes_per_partition, DType.F32)
        elements = bytes_per_partition // 4
        loop.step(engine, Opcode.TENSOR_COPY, reads=(tile,), writes=(made,), elements=elements)
        tile = made
    loop.store(tile, transfer(context, load=False, size=128 * bytes_per_partition))
    return loop


@pytest.mark.parametrize(
    ("share", "buffers"), [(10, [2, 2, 2, 2, 2]), (9, [2, 1, 1, 1, 2]), (6, [1, 1, 1, 1, 1])]
)
def test_what_dma_engines_touch_keeps_two_buffers_where_not_all_tiles_can(context, share, buffers):
    """Of five tiles: two of each, if they fit; else what overlaps transfers, which take longest."""
    engines = (Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD, Engine.VECTOR)
    loop = chain(context, engines, CORE.sbuf_bytes_per_partition // share // 64 * 64)
    loop.emit()
    assert [slot.buffers for slot in loop._slots] == buffers
    assert context.sbuf.free_bytes == CORE.sbuf_bytes_per_partition


def test_a_resident_slot_is_loaded_once_per_content(context):
    loop = TileLoop(context, 6, 0)
    version = np.arange(6) // 3
    block = loop.slot("block", 2048, DType.F32, version=version)
    loop.load(block, transfer(context, load=True), active=loop.first_of(version))
    loop.step(Engine.VECTOR, Opcode.TENSOR_COPY, reads=(block,), elements=512)
    loop.emit()
    program = context.builder.finish()
    assert len(program.dmas) == 2
    assert (
        len(np.unique(program.instructions["source"][program.instructions["opcode"] == Opcode.TENSOR_COPY]))
        == 2
    )


def test_steps_that_are_never_active_leave_no_rows(context):
    loop = TileLoop(context, 3, 0)
    tile = loop.slot("tile", 64, DType.F32)
    loop.step(Engine.VECTOR, Opcode.MEMSET, writes=(tile,), elements=16, active=np.array([True, False, True]))
    loop.emit()
    assert len(context.builder.finish().instructions) == 2
