"""Whatever the passes do, a kernel keeps the values of its own order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from neuron_tools import hardware
from neuron_tools.backend.allocate import Places
from neuron_tools.backend.body import OUTPUT, SPILL, Body
from neuron_tools.backend.pipeline import PASSES, WRITTEN, Options, asked_options, run_passes
from neuron_tools.errors import UsageError
from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.kernel import Kernel
from neuron_tools.nki.lowering import lower
from neuron_tools.nki.lowering.body import make_body
from neuron_tools.nki.lowering.program import _Lowering
from neuron_tools.nki.older.language import par_dim
from neuron_tools.records.program import Flag, Memory, Opcode, Purpose
from neuron_tools.simulator import check
from tests.unit.backend.hazards import hazards
from tests.unit.nki.kernels import floats, tile

CORE = hardware.get("trn2")
WORD = 4


def values_of(body: Body, places: Places | None) -> dict[int, list[int]]:
    """What the calls leave in the outputs, if run in the order of the rows.

    Every word of a partition holds a number that stands for its value; with `places`, tiles lie where these
    say, so that one that is overwritten while it lives gives other numbers.
    """
    chip = {memory: np.zeros(1 << 16, np.uint64) for memory in (Memory.SBUF, Memory.PSUM)}
    own: dict[int, np.ndarray] = {}
    for row in body.rows:
        kind = body.kinds[row[0]]
        reads = [_view(body, places, chip, own, region).read() for region in row[5:] if region >= 0]
        for slot, region in enumerate(row[3:5]):
            if region >= 0:
                target = _view(body, places, chip, own, region)
                target.write(_result(kind, slot, reads, target.read()))
    outputs = np.flatnonzero(body.buffers.role == OUTPUT)
    return {int(body.buffers.origin[number]): own[int(number)].tolist() for number in outputs}


def _view(body, places, chip, own, region) -> Words:
    buffer, first, last, low, high = (int(value) for value in body.regions[region])
    buffers = body.buffers
    columns = slice(low // WORD, high // WORD)
    if not buffers.on_chip[buffer] or places is None:
        width = int(buffers.pitch_bytes[buffer]) // WORD
        lines = 1 if buffers.on_chip[buffer] else max(int(buffers.lines[buffer]) // 128, 1)
        words = own.setdefault(buffer, _start(body, buffer, lines * width)).reshape(lines, width)
        chosen = slice(0, 1) if buffers.on_chip[buffer] else slice(first // 128, max(last // 128, 1))
        return Words(words[chosen, columns])
    start = int(places.address[buffer]) // WORD
    words = chip[Memory(int(buffers.memory[buffer]))][start:]
    return Words(words[columns].reshape(1, -1))


class Words:
    """The words of a region, several blocks of 128 rows of HBM one after another."""

    def __init__(self, words: np.ndarray) -> None:
        self.words = words

    def read(self) -> np.ndarray:
        return self.words.reshape(-1).copy()

    def write(self, values) -> None:
        self.words[...] = np.asarray(values).reshape(self.words.shape) if np.ndim(values) else values


def _start(body, buffer, words) -> np.ndarray:
    role = int(body.buffers.role[buffer])
    if body.buffers.on_chip[buffer] or role in (OUTPUT, SPILL):
        return np.zeros(words, np.uint64)
    return np.arange(words, dtype=np.uint64) + np.uint64(1000003 * (1 + int(body.buffers.origin[buffer])))


def _result(kind, slot, reads, target):
    opcodes = [step.opcode for step in kind.steps]
    if kind.transfer is not None or opcodes == [Opcode.TENSOR_COPY]:
        return reads[0]
    parts = zip(*(np.split(each, kind.tiles) for each in [target, *reads]), strict=True)
    return np.concatenate([_result_of_one(kind, opcodes, slot, part[1:], part[0]) for part in parts])


def _result_of_one(kind, opcodes, slot, reads, target):
    factor = np.uint64(0x9E3779B97F4A7C15)
    if opcodes == [Opcode.MEMSET]:
        return np.full(len(target), np.uint64(1000 * (kind.constant or 0.0)))
    total = np.zeros(len(target), np.uint64)
    for at, read in enumerate(reads):
        spread = read[np.arange(len(target)) % len(read)] + read.sum(dtype=np.uint64)
        total = (total ^ (spread * factor)) * np.uint64(2 * at + 3)
    products = [step for step in kind.steps if step.opcode is Opcode.MATMUL]
    if products:
        return total + (target if Flag.ACCUMULATE in products[0].flags else np.uint64(0))
    return total * np.uint64(sum(opcodes) + 7 * slot + 1)


steps = st.lists(
    st.tuples(st.sampled_from(["load", "add", "scale", "copy", "exp", "matmul", "store", "fill"]),
              st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)),
    min_size=4, max_size=60,
)  # fmt: skip


def random_kernel(moves, width):
    """A kernel of the older dialect that makes the moves on six tiles, anew in each of three iterations."""

    def body(a, b):
        result = nl.ndarray((128 * 4, width), dtype=a.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(3):
            tiles = [tile((128, width)) for _ in range(6)]
            for number, each in enumerate(tiles):
                nisa.dma_copy(each, (a if number % 2 else b)[(number % 4) * 128 : (number % 4 + 1) * 128])
            for name, x, y, z in moves:
                move(name, tiles, x, y, (z + i) % 4, a, result, width)
            nisa.dma_copy(result[i * 128 : (i + 1) * 128], tiles[i])
        return result

    return body


def move(name, tiles, x, y, z, a, result, width):
    if name == "load":
        nisa.dma_copy(tiles[x], a[z * 128 : (z + 1) * 128])
    elif name == "add":
        nisa.tensor_tensor(tiles[x], tiles[y], tiles[z], nl.add)
    elif name == "scale":
        nisa.tensor_scalar(tiles[x], tiles[y], nl.multiply, 2.0)
    elif name == "copy":
        nisa.tensor_copy(tiles[x], tiles[y])
    elif name == "exp":
        nisa.activation(tiles[x], nl.exp, tiles[y])
    elif name == "fill":
        nisa.memset(tiles[x], float(z))
    elif name == "store":
        nisa.dma_copy(result[z * 128 : (z + 1) * 128], tiles[x])
    else:
        total = nl.zeros((128, 128), dtype=nl.float32, buffer=nl.psum)
        for k in range(2):
            nisa.nc_matmul(total, tiles[y][:, k * 128 : (k + 1) * 128], tiles[z][:, :128])
        nisa.tensor_copy(tiles[x][:, :128], total)


def traced(body, *arrays, core=CORE):
    (trace,) = Kernel(body, core=core, older_dialect=True).run(*arrays, values=False).traces
    return trace


@settings(max_examples=40, deadline=None)
@given(steps, st.sampled_from([(), *((name,) for name in PASSES)]), st.sampled_from(["trn1", "trn2"]))
def test_any_schedule_gives_the_values_of_program_order(moves, off, target):
    core = hardware.get(target)
    trace = traced(random_kernel(moves, 256), floats(512, 256), floats(512, 256), core=core)
    written = make_body(trace)
    compiled, places = run_passes(written, Options(frozenset(off)))
    assert values_of(compiled, places) == values_of(written, None)
    check(lower(trace, "kernel", options=Options(frozenset(off))).program, core)
    assert hazards(trace, Options(frozenset(off)), core) == []


def test_without_its_dependencies_a_kernel_has_hazards(monkeypatch):
    moves = [("add", 0, 1, 2), ("add", 1, 0, 2), ("add", 2, 0, 1), ("store", 0, 0, 0)]
    trace = traced(random_kernel(moves, 256), floats(512, 256), floats(512, 256))
    edges = _Lowering._edges
    monkeypatch.setattr(
        _Lowering, "_edges", lambda *given: (*(each[:0] for each in edges(*given)[:3]), edges(*given)[3])
    )
    assert hazards(trace, Options(), CORE)


rows_of_tiles = st.lists(
    st.tuples(st.sampled_from(["scores", "largest", "sum", "scale", "shift", "turn", "store"]),
              st.integers(0, 2), st.integers(0, 2)),
    min_size=3, max_size=24,
)  # fmt: skip


def nested_kernel(moves, turns):
    """A loop with loops inside, over scores, rows' maxima and sums, small products, and turned tiles."""

    def body(a):
        result = nl.ndarray((128 * turns, 256), dtype=a.dtype, buffer=nl.shared_hbm)
        held = tile((128, 256))
        nisa.dma_copy(held, a[0:128])
        for i in nl.affine_range(turns):
            tiles, small = [tile((128, 256)) for _ in range(3)], [tile((128, 2)) for _ in range(3)]
            for number in range(3):
                nisa.dma_copy(tiles[number], a[i * 128 : (i + 1) * 128])
                nisa.memset(small[number], 1.0)
            for name, x, y in moves:
                nested_move(name, tiles, small, x, y, held)
            nisa.dma_copy(result[i * 128 : (i + 1) * 128], tiles[0])
        return result

    return body


def nested_move(name, tiles, small, x, y, held):
    if name == "scale":
        nisa.tensor_scalar(small[x], small[y], nl.multiply, 2.0)
    elif name == "shift":
        nisa.reciprocal(small[x], small[y])
    elif name == "store":
        nisa.tensor_copy(held, tiles[x])
    for j in nl.affine_range(2):
        columns = slice(128 * j, 128 * j + 128)
        if name == "scores":
            total = nl.zeros((128, 128), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(total, held[:, columns], tiles[y][:, columns])
            nisa.tensor_copy(tiles[x][:, columns], total)
        elif name == "turn":
            turned = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_transpose(turned, tiles[y][:, columns])
            nisa.tensor_copy(tiles[x][:, columns], turned)
        elif name in ("largest", "sum"):
            operation = nl.maximum if name == "largest" else nl.add
            nisa.tensor_reduce(small[x][:, j : j + 1], operation, tiles[y][:, columns], axis=1)


@settings(max_examples=40, deadline=None)
@given(rows_of_tiles, st.sampled_from([1, 3, 6]), st.sampled_from([(), *((name,) for name in PASSES)]))
def test_loops_with_loops_inside_keep_the_values_of_program_order(moves, turns, off):
    trace = traced(nested_kernel(moves, turns), floats(128 * turns, 256))
    compiled, places = run_passes(make_body(trace), Options(frozenset(off)))
    assert values_of(compiled, places) == values_of(make_body(trace), None)
    check(lower(trace, "kernel", options=Options(frozenset(off))).program, CORE)
    assert hazards(trace, Options(frozenset(off)), CORE) == []


@settings(max_examples=10, deadline=None)
@given(steps)
def test_what_is_spilled_comes_back(moves):
    trace = traced(random_kernel(moves, 8192), floats(512, 8192), floats(512, 8192))
    written = make_body(trace)
    compiled, places = run_passes(written)
    assert values_of(compiled, places) == values_of(written, None)


@pytest.mark.parametrize("options", [Options(), WRITTEN], ids=["compiled", "written"])
def test_more_sums_than_psum_holds_are_copied_out_as_soon_as_they_are_made(options):
    def body(a):
        result = nl.ndarray((12, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
        held, scale = tile((128, 512)), tile((128, 1))
        nisa.dma_copy(held, a)
        nisa.memset(scale, 2.0)
        sums = [nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum) for _ in range(12)]
        for total in sums:
            for k in range(2):
                nisa.nc_matmul(total, held[:, k * 128 : (k + 1) * 128], held)
        for number, total in enumerate(sums):
            copied = tile((128, 512))
            nisa.tensor_scalar(copied, total, nl.multiply, scale)
            nisa.dma_copy(result[number], copied)
        return result

    trace = traced(body, floats(128, 512))
    compiled, places = run_passes(make_body(trace), options)
    assert values_of(compiled, places) == values_of(make_body(trace), None)
    check(lower(trace, "kernel", options=options).program, CORE)


@pytest.mark.parametrize("options", [Options(), WRITTEN], ids=["compiled", "written"])
def test_scores_of_more_rows_than_psum_holds_are_used_up_row_by_row(options):
    rows, columns = 4, 4

    def body(a):
        result = nl.ndarray((rows * columns, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
        held = tile((128, 512))
        nisa.dma_copy(held, a)
        scores = [[nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum) for _ in range(columns)]
                  for _ in range(rows)]  # fmt: skip
        for row, column in np.ndindex(rows, columns):
            nisa.nc_matmul(scores[row][column], held[:, row * 128 : (row + 1) * 128], held)
        largest = [tile((128, 1)) for _ in range(rows)]
        for row in range(rows):
            each = tile((128, columns))
            for column in range(columns):
                nisa.tensor_reduce(each[:, column : column + 1], nl.maximum, scores[row][column], axis=1)
            nisa.tensor_reduce(largest[row], nl.maximum, each, axis=1)
        for row, column in np.ndindex(rows, columns):
            less = tile((128, 512))
            nisa.tensor_scalar(less, scores[row][column], nl.subtract, largest[row])
            nisa.dma_copy(result[row * columns + column], less)
        return result

    trace = traced(body, floats(128, 512))
    compiled, places = run_passes(make_body(trace), options)
    assert values_of(compiled, places) == values_of(make_body(trace), None)
    check(lower(trace, "kernel", options=options).program, CORE)


def test_the_same_kernel_gives_the_same_program():
    moves = [("matmul", 0, 1, 2), ("exp", 3, 0, 1), ("add", 4, 3, 0), ("scale", 5, 4, 0), ("copy", 1, 5, 0)]
    first, second = (
        lower(traced(random_kernel(moves, 256), floats(512, 256), floats(512, 256)), "kernel").program
        for _ in range(2)
    )
    assert np.array_equal(first.instructions, second.instructions)
    assert np.array_equal(first.waits, second.waits)


def test_a_load_that_no_loop_changes_is_made_once():
    def body(a):
        result = nl.ndarray((512, 64), dtype=a.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(4):
            weight, part = tile((128, 64)), tile((128, 64))
            nisa.dma_copy(weight, a[0:128])
            nisa.dma_copy(part, a[i * 128 : (i + 1) * 128])
            nisa.tensor_tensor(part, part, weight, nl.add)
            nisa.dma_copy(result[i * 128 : (i + 1) * 128], part)
        return result

    trace = traced(body, floats(512, 64))
    loads = [
        int((lower(trace, "kernel", options=options).program.dmas["purpose"] == Purpose.INPUT).sum())
        for options in (Options(frozenset({"merge"})), Options(frozenset({"merge", "redundant"})))
    ]
    assert loads == [5, 8]


def merged_transfers(width, row_blocks, core=CORE):
    """Bytes and descriptors of the transfers of a kernel that scales tiles one after another."""

    def body(a):
        result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(row_blocks):
            for j in nl.affine_range(a.shape[1] // width):
                part, scaled = tile((128, width)), tile((128, width))
                nisa.dma_copy(part, a[i * 128 : (i + 1) * 128, j * width : (j + 1) * width])
                nisa.tensor_scalar(scaled, part, nl.multiply, 2.0)
                nisa.dma_copy(result[i * 128 : (i + 1) * 128, j * width : (j + 1) * width], scaled)
        return result

    trace = traced(body, floats(128 * row_blocks, 2048), core=core)
    dmas = lower(trace, "kernel").program.dmas
    return sorted({(int(dma["bytes"]), int(dma["descriptor_bytes"])) for dma in dmas}), len(dmas)


@pytest.mark.parametrize(("width", "row_blocks", "expected"), [
    (512, 1, ([(128 * 4096, 4096)], 4)),
    (2048, 2, ([(128 * 8192, 8192)], 4)),
    (1024, 1, ([(128 * 4096, 4096)], 4)),
])  # fmt: skip
def test_transfers_of_neighbours_are_one_up_to_4_kib_a_partition(width, row_blocks, expected):
    assert merged_transfers(width, row_blocks) == expected


def test_transfers_stay_as_written_where_nothing_was_traced():
    assert merged_transfers(512, 1, hardware.get("trn1"))[1] == 8


@pytest.mark.parametrize(("width", "products", "copies"), [(512, 3, 0), (2048, 12, 12)])
def test_a_row_comes_to_all_partitions_by_a_product(width, products, copies):
    def body(a, row):
        result = nl.ndarray((384, width), dtype=a.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(3):
            part, bias = tile((128, width)), tile((1, width))
            nisa.dma_copy(part, a[i * 128 : (i + 1) * 128])
            nisa.dma_copy(bias, row)
            nisa.tensor_tensor(part, part, bias.broadcast_to((128, width)), nl.add)
            nisa.dma_copy(result[i * 128 : (i + 1) * 128], part)
        return result

    program = lower(traced(body, floats(384, width), floats(1, width)), "kernel").program
    opcodes = program.instructions["opcode"]
    assert (opcodes == Opcode.MATMUL).sum() == 2 * products
    assert (opcodes == Opcode.TENSOR_COPY).sum() == copies
    check(program, CORE)


def test_what_a_pass_changed_is_told_by_line():
    def body(a):
        result = nl.ndarray((512, 64), dtype=a.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(4):
            weight, part, total = tile((128, 64)), tile((128, 64)), tile((128, 64))
            nisa.dma_copy(weight, a[0:128])
            nisa.dma_copy(part, a[i * 128 : (i + 1) * 128])
            nisa.tensor_tensor(total, part, weight, nl.add)
            nisa.dma_copy(result[i * 128 : (i + 1) * 128], total)
        return result

    source = lower(traced(body, floats(512, 64)), "kernel").source
    assert {each.name for each in source.transformations} == {"redundant", "merge"}
    again = next(each for each in source.transformations if each.name == "redundant")
    assert again.calls >= 3
    assert again.hbm_bytes == again.calls * 128 * 64 * 4
    assert again.busy_ns > 0
    assert source.stacks[again.stack][0].line > 0


def test_a_capture_can_ask_for_the_schedule_as_written():
    assert asked_options({}) == Options()
    assert asked_options({"NEURON_TOOLS_SCHEDULE": "written"}) is WRITTEN
    with pytest.raises(UsageError, match="choose compiled or written"):
        asked_options({"NEURON_TOOLS_SCHEDULE": "best"})


def test_a_row_loaded_once_comes_to_all_partitions_once():
    def body(a, row):
        result = nl.ndarray((384, 512), dtype=a.dtype, buffer=nl.shared_hbm)
        bias = tile((1, 512))
        nisa.dma_copy(bias, row)
        for i in nl.affine_range(3):
            part = tile((128, 512))
            nisa.dma_copy(part, a[i * 128 : (i + 1) * 128])
            nisa.tensor_tensor(part, part, bias.broadcast_to((128, 512)), nl.add)
            nisa.dma_copy(result[i * 128 : (i + 1) * 128], part)
        return result

    program = lower(traced(body, floats(384, 512), floats(1, 512)), "kernel").program
    assert (program.instructions["opcode"] == Opcode.MATMUL).sum() == 2


def test_a_zeroed_accumulator_has_no_instruction():
    trace = traced(random_kernel([("matmul", 0, 1, 2)], 256), floats(512, 256), floats(512, 256))
    opcodes = lower(trace, "kernel").program.instructions["opcode"]
    assert not (opcodes == Opcode.MEMSET).any()


@pytest.mark.parametrize("blocks", [64, 128])
def test_a_block_dimension_is_not_one_allocation(blocks):
    def body(a):
        result = nl.ndarray((128, 2048), dtype=a.dtype, buffer=nl.shared_hbm)
        parts = nl.ndarray((blocks, par_dim(128), 2048), dtype=a.dtype, buffer=nl.sbuf)
        for i in nl.affine_range(blocks):
            nisa.dma_copy(parts[i], a)
            nisa.activation(parts[i], nl.exp, parts[i])
            nisa.dma_copy(result, parts[i])
        return result

    program = lower(traced(body, floats(128, 2048)), "kernel").program
    assert not (program.dmas["purpose"] == Purpose.SPILL_SAVE).any()


def test_a_result_handed_on_in_every_iteration_has_no_copy():
    def body(a):
        result = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
        total, kept = tile((128, 64)), tile((128, 64))
        nisa.dma_copy(total, a[0:128])
        for i in nl.affine_range(1, 4):
            part = tile((128, 64))
            nisa.dma_copy(part, a[i * 128 : (i + 1) * 128])
            nisa.tensor_tensor(total, total, part, nl.add)
            nisa.tensor_copy(kept, total)
        nisa.dma_copy(result, kept)
        return result

    trace = traced(body, floats(512, 64))
    copies = [
        int(
            (
                lower(trace, "kernel", options=options).program.instructions["opcode"] == Opcode.TENSOR_COPY
            ).sum()
        )
        for options in (Options(), Options(frozenset({"copies"})))
    ]
    assert copies == [0, 3]


def test_a_copy_of_what_is_written_later_stays():
    def body(a):
        result = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
        total, kept = tile((128, 64)), tile((128, 64))
        nisa.dma_copy(total, a)
        nisa.tensor_copy(kept, total)
        nisa.tensor_tensor(total, total, kept, nl.add)
        nisa.dma_copy(result, kept)
        return result

    trace = traced(body, floats(128, 64))
    program = lower(trace, "kernel").program
    assert (program.instructions["opcode"] == Opcode.TENSOR_COPY).sum() == 1


def chain(core):
    """A kernel that adds, scales and adds again in 512 columns of fp32, traced for a core."""

    def body(a):
        result = nl.ndarray((512, 512), dtype=a.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(4):
            part, scaled, total = tile((128, 512)), tile((128, 512)), tile((128, 512))
            nisa.dma_copy(part, a[i * 128 : (i + 1) * 128])
            nisa.tensor_scalar(scaled, part, nl.multiply, 0.5)
            nisa.tensor_tensor(total, part, scaled, nl.add)
            nisa.dma_copy(result[i * 128 : (i + 1) * 128], total)
        return result

    return traced(body, floats(512, 512), core=core)


@pytest.mark.parametrize(("target", "in_psum"), [("trn1", 4), ("trn2", 0)])
def test_the_latest_operand_of_a_tensor_tensor_lies_in_psum(target, in_psum):
    program = lower(chain(hardware.get(target)), "kernel").program
    scales = program.instructions[program.instructions["opcode"] == Opcode.TENSOR_SCALAR]
    sums = program.instructions[program.instructions["opcode"] == Opcode.TENSOR_TENSOR]
    assert (scales["destination_memory"] == Memory.PSUM).sum() == in_psum
    assert ((sums["flags"] & Flag.SECOND_OPERAND_PSUM) != 0).sum() == in_psum


def test_a_sum_of_loaded_tiles_that_no_loop_changes_is_made_once():
    def body(a):
        result = nl.ndarray((512, 64), dtype=a.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(4):
            first, second, total, scaled = (tile((128, 64)) for _ in range(4))
            nisa.dma_copy(first, a[0:128])
            nisa.dma_copy(second, a[128:256])
            nisa.tensor_tensor(total, first, second, nl.add)
            nisa.activation(scaled, nl.exp, total)
            nisa.dma_copy(result[i * 128 : (i + 1) * 128], scaled)
        return result

    opcodes = lower(traced(body, floats(512, 64)), "kernel").program.instructions["opcode"]
    assert (opcodes == Opcode.TENSOR_TENSOR).sum() == 1
    assert (opcodes == Opcode.ACTIVATE).sum() == 4


def test_blocks_of_a_loaded_tensor_take_turns_at_two_places():
    def body(a):
        result = nl.ndarray((1024, 512), dtype=a.dtype, buffer=nl.shared_hbm)
        parts = nl.ndarray((8, par_dim(128), 512), dtype=a.dtype, buffer=nl.sbuf)
        for i in nl.affine_range(8):
            nisa.dma_copy(parts[i], a[i * 128 : (i + 1) * 128])
            nisa.activation(parts[i], nl.exp, parts[i])
            nisa.dma_copy(result[i * 128 : (i + 1) * 128], parts[i])
        return result

    places = run_passes(make_body(traced(body, floats(1024, 512), core=hardware.get("trn1"))))[1]
    assert len(set(places.address[places.address >= 0].tolist())) == 2


def test_where_sbuf_is_full_a_result_takes_the_place_of_an_operand_that_ends():
    columns, kept = 7168, 6

    def body(a):
        result = nl.ndarray((128, columns), dtype=a.dtype, buffer=nl.shared_hbm)
        parts = [tile((128, columns)) for _ in range(kept)]
        for part in parts:
            nisa.dma_copy(part, a)
            nisa.activation(part, nl.exp, part)
        for part in parts:
            total = tile((128, columns))
            nisa.activation(total, nl.exp, part)
            again = tile((128, columns))
            nisa.activation(again, nl.exp, total)
            nisa.dma_copy(result, again)
        return result

    program = lower(traced(body, floats(128, columns), core=hardware.get("trn1")), "kernel").program
    assert not (program.dmas["purpose"] == Purpose.SPILL_SAVE).any()


def rows_of_scores(turns, pieces):
    """Maxima, exponentials, sums and turned tiles of products, as attention has them."""

    def body(q, k):
        result = nl.ndarray((128 * turns, 512), dtype=nl.float32, buffer=nl.shared_hbm)
        queries, keys = tile((128, 128 * turns)), tile((128, 512 * pieces))
        nisa.dma_copy(queries, q)
        nisa.dma_copy(keys, k)
        for i in nl.affine_range(turns):
            scores, weights, turned = (tile((128, 512 * pieces)) for _ in range(3))
            parts, largest = tile((128, pieces)), tile((128, 1))
            for j in nl.affine_range(pieces):
                columns = slice(512 * j, 512 * j + 512)
                product = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
                nisa.nc_matmul(product, queries[:, 128 * i : 128 * i + 128], keys[:, columns])
                nisa.tensor_copy(scores[:, columns], product)
                nisa.tensor_reduce(parts[:, j : j + 1], nl.maximum, scores[:, columns], axis=1)
            nisa.tensor_reduce(largest, nl.maximum, parts, axis=1)
            for j in nl.affine_range(pieces):
                columns = slice(512 * j, 512 * j + 512)
                nisa.activation(weights[:, columns], nl.exp, scores[:, columns], bias=largest)
            for j in nl.affine_range(4 * pieces):
                columns = slice(128 * j, 128 * j + 128)
                part = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
                nisa.nc_transpose(part, weights[:, columns])
                nisa.tensor_copy(turned[:, columns], part)
            nisa.dma_copy(result[128 * i : 128 * i + 128], turned[:, :512])
        return result

    return body


def compiled_scores(turns, pieces=1, core=CORE, off=()):
    trace = traced(
        rows_of_scores(turns, pieces), floats(128, 128 * turns), floats(128, 512 * pieces), core=core
    )
    compiled, _ = run_passes(make_body(trace), Options(frozenset(off)))
    return [compiled.kinds[row[0]] for row in compiled.rows]


def reductions(kinds, elements):
    return [
        kind.tiles for kind in kinds if kind.name == "tensor_reduce" and kind.steps[0].elements == elements
    ]


@pytest.mark.parametrize(("turns", "expected"), [(4, [4]), (8, [4, 4]), (6, [4, 2]), (1, [1])])
def test_small_operations_of_four_turns_are_one_where_the_loop_holds_psum(turns, expected):
    kinds = compiled_scores(turns)
    assert [k.tiles for k in kinds if k.name == "tensor_reduce" and k.steps[0].elements < 512] == expected
    assert reductions(kinds, 512) == [1] * turns


def test_no_exponential_starts_before_the_last_maximum_of_four_turns():
    names = [kind.name for kind in compiled_scores(4, off=("schedule",))]
    last = max(at for at, name in enumerate(names) if name == "tensor_reduce")
    assert names.index("activation") > last


def test_small_operations_of_all_turns_are_one_where_the_loop_holds_no_psum():
    def body(a):
        result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(6):
            rows, halves, largest = tile((128, 1024)), tile((128, 2)), tile((128, 1))
            nisa.dma_copy(rows, a[i * 128 : (i + 1) * 128])
            for j in nl.affine_range(2):
                nisa.tensor_reduce(halves[:, j : j + 1], nl.maximum, rows[:, 512 * j : 512 * j + 512], axis=1)
            nisa.tensor_reduce(largest, nl.maximum, halves, axis=1)
            for j in nl.affine_range(2):
                columns = slice(512 * j, 512 * j + 512)
                nisa.tensor_scalar(rows[:, columns], rows[:, columns], nl.subtract, largest)
            nisa.dma_copy(result[i * 128 : (i + 1) * 128], rows)
        return result

    compiled, _ = run_passes(make_body(traced(body, floats(768, 1024))))
    kinds = [compiled.kinds[row[0]] for row in compiled.rows]
    assert [k.tiles for k in kinds if k.name == "tensor_reduce" and k.steps[0].elements < 512] == [6]


def test_four_products_are_read_in_psum_and_the_others_copied():
    def copies(turns, pieces):
        kinds = compiled_scores(turns, pieces)
        return sum(k.tiles == 1 and k.name == "tensor_copy" for k in kinds)

    assert (copies(4, 1), copies(4, 2), copies(8, 2)) == (0, 4, 8)


def test_four_turned_tiles_share_a_bank_and_a_copy():
    assert [k.tiles for k in compiled_scores(2) if k.name == "tensor_copy"] == [4, 4]
    written = compiled_scores(2, off=("bank_copies",))
    assert [k.tiles for k in written if k.name == "tensor_copy"] == [1] * 8


def test_loops_stay_as_written_where_nothing_was_traced():
    assert all(kind.tiles == 1 for kind in compiled_scores(4, core=hardware.get("trn1")))


def two_nests(second_turns=4, second_loads_too=True):
    """Two nests that scale the same tiles: the second multiplies what the first made by its own."""

    def body(a, b):
        result = nl.ndarray((4 * 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
        made = [[tile((128, 256)) for _ in range(2)] for _ in range(4)]
        for i in nl.affine_range(4):
            for j in nl.affine_range(2):
                part = tile((128, 256))
                nisa.dma_copy(part, a[128 * i : 128 * i + 128, 256 * j : 256 * j + 256])
                nisa.activation(made[i][j], nl.exp, part)
        for i in nl.affine_range(second_turns):
            for j in nl.affine_range(8 // second_turns):
                row, column = divmod(i * (8 // second_turns) + j, 2)
                part, product = tile((128, 256)), tile((128, 256))
                source = a if second_loads_too else b
                nisa.dma_copy(part, source[128 * row : 128 * row + 128, 256 * column : 256 * column + 256])
                nisa.tensor_tensor(product, made[row][column], part, nl.multiply)
                nisa.dma_copy(result[128 * row : 128 * row + 128, 256 * column : 256 * column + 256], product)
        return result

    trace = traced(body, floats(512, 512), floats(512, 512), core=hardware.get("trn1"))
    written = make_body(trace)
    compiled, places = run_passes(written, Options(frozenset({"schedule"})))
    assert values_of(compiled, places) == values_of(written, None)
    return [compiled.kinds[row[0]].name for row in compiled.rows]


def test_nests_that_loop_alike_and_load_the_same_are_one():
    names = two_nests()
    assert names.index("tensor_tensor") < names.index("activation") + 4
    assert names.count("dma_copy") == 16  # each tile is loaded once


@pytest.mark.parametrize("keywords", [{"second_turns": 2}, {"second_loads_too": False}])
def test_other_nests_stay_apart(keywords):
    names = two_nests(**keywords)
    assert names.index("tensor_tensor") > max(at for at, name in enumerate(names) if name == "activation")


def test_of_tiles_that_are_used_in_a_circle_too_long_for_sbuf_none_stays():
    columns, tiles, turns = 8192, 8, 3

    def body(a):
        result = nl.ndarray((128, columns), dtype=a.dtype, buffer=nl.shared_hbm)
        held = [tile((128, columns)) for _ in range(tiles)]
        for each in held:
            nisa.dma_copy(each, a)
            nisa.activation(each, nl.exp, each)
        for _ in range(turns):
            for each in held:
                nisa.activation(each, nl.exp, each)
        for each in held:
            nisa.dma_copy(result, each)
        return result

    purposes = lower(traced(body, floats(128, columns)), "kernel").program.dmas["purpose"]
    assert (purposes == Purpose.SPILL_RELOAD).sum() >= tiles * turns
