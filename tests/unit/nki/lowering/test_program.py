from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from neuron_tools import hardware
from neuron_tools.backend.allocate import allocate
from neuron_tools.backend.dependency_kernel import find_dependencies
from neuron_tools.backend.pipeline import WRITTEN
from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.kernel import Kernel
from neuron_tools.nki.lowering import lower
from neuron_tools.nki.lowering.body import make_body
from neuron_tools.records.program import Engine, Memory, Opcode
from neuron_tools.simulator import check, simulate
from tests.unit.nki.kernels import floats, on_chip, tile

CORE = hardware.get("trn2")


def lowered(body, *arrays, values=False, **options):
    (trace,) = Kernel(body, core=CORE, **options).run(*arrays, values=values).traces
    return lower(trace, "kernel")


def as_written(body, *arrays):
    (trace,) = Kernel(body, core=CORE).run(*arrays, values=False).traces
    return lower(trace, "kernel", options=WRITTEN)


def matmul(a, b):
    result = nl.ndarray((a.shape[1], b.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    total = tile((128, 512), buffer=nl.psum)
    for k in nl.affine_range(a.shape[0] // 128):
        left, right = tile((128, 128), a.dtype), tile((128, 512), b.dtype)
        nisa.dma_copy(left, a[k * 128 : (k + 1) * 128])
        nisa.dma_copy(right, b[k * 128 : (k + 1) * 128])
        nisa.nc_matmul(total, left, right)
    staged = tile((128, 512))
    nisa.tensor_copy(staged, total)
    nisa.dma_copy(result, staged)
    return result


def test_a_kernel_becomes_a_program_that_checks_and_runs():
    program = lowered(matmul, floats(512, 128), floats(512, 512)).program
    check(program, CORE)
    times = simulate(program, CORE)
    opcodes = program.instructions["opcode"]
    assert (opcodes == Opcode.MATMUL).sum() == 8  # fp32: two passes each
    assert len(program.dmas) == 9
    assert program.hlo[0].model_flops == 2 * 512 * 128 * 512
    assert times.duration_ps > 0


def test_the_store_starts_after_all_its_data_is_there():
    program = lowered(matmul, floats(512, 128), floats(512, 512)).program
    times = simulate(program, CORE)
    triggers = program.instructions["dma"]
    store = np.flatnonzero(program.dmas["destination_memory"] == Memory.HBM)[0]
    row = np.flatnonzero(triggers == store)[0]
    copied = np.flatnonzero(program.instructions["opcode"] == Opcode.TENSOR_COPY)[0]
    last = np.flatnonzero(program.instructions["opcode"] == Opcode.MATMUL)[-1]
    assert times.end_ps[last] <= times.start_ps[copied]
    assert times.end_ps[copied] <= times.start_ps[row]


def test_loads_of_later_tiles_do_not_wait_for_earlier_results():
    def body(a):
        result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        for i in range(8):
            part = tile((128, 512))
            nisa.dma_copy(part, a[i * 128 : (i + 1) * 128])
            for _ in range(20):
                nisa.activation(part, nl.exp, part)
            nisa.dma_copy(result[i * 128 : (i + 1) * 128], part)
        return result

    program = lowered(body, floats(1024, 512)).program
    times = simulate(program, CORE)
    loads = program.dmas["destination_memory"] == Memory.SBUF
    first_result = times.end_ps[program.instructions["opcode"] == Opcode.ACTIVATE].min()
    assert times.dma_start_ps[loads].max() < first_result * 3
    assert times.dma_end_ps[loads].max() < times.duration_ps / 3


def test_instructions_know_their_line_stack_and_iteration():
    def load(a, i):
        part = tile((128, 16))
        nisa.dma_copy(part, a[i * 128 : (i + 1) * 128])
        return part

    def body(a):
        for i in range(2):
            for j in nl.affine_range(1, 3):
                nisa.memset(load(a, i), float(j))
        return a

    source = as_written(body, floats(256, 16)).source
    assert [loop[0] for loop in source.loops] == ["i", "j"]
    first = source.stacks[source.stack[0]]
    assert [frame.function.rsplit(".", 1)[-1] for frame in first] == ["load", "body"]
    assert source.calls[source.call_kind[source.call[0]]] == "dma_copy"
    values = []
    for row in range(len(source.iteration)):
        found, at = {}, source.iteration[row]
        while at >= 0:
            parent, loop, value = source.iterations[at]
            found[source.loops[loop][0]] = int(value)
            at = parent
        values.append(found)
    assert values == [{"i": i, "j": j} for i in range(2) for j in (1, 2) for _ in range(2)]


def test_an_instance_of_a_grid_is_an_iteration():
    def body(a):
        nisa.memset(on_chip(a[0:128]), float(nl.program_id(0)))
        return a

    source = lowered(body, floats(128, 16), grid=(3,), older_dialect=True).source
    assert source.loops[0][0] == "program_id(0)"
    assert source.iterations[:, 2].tolist() == [0, 1, 2]


def test_activations_name_their_function_and_reductions_are_marked():
    def body(a):
        part, total = on_chip(a), tile((128, 1))
        nisa.activation(part, nl.gelu, part, reduce_op=nl.add, reduce_res=total,
                        reduce_cmd=nisa.reduce_cmd.reset_reduce)  # fmt: skip
        return a

    program = lowered(body, floats(128, 16)).program
    row = program.instructions[program.instructions["opcode"] == Opcode.ACTIVATE][0]
    assert program.activations[row["activation"]] == "gelu"
    assert row["engine"] == Engine.SCALAR
    assert row["flags"] & 32


def test_a_row_says_which_engines_it_was_chosen_from():
    def body(a):
        part = on_chip(a)
        nisa.tensor_scalar(part, part, nl.multiply, 2.0)
        nisa.tensor_scalar(part, part, nl.multiply, 2.0, engine=nisa.vector_engine)
        nisa.tensor_tensor(part, part, part, nl.add)
        return a

    table = lowered(body, floats(128, 16)).program.instructions
    scaled = table[table["opcode"] == Opcode.TENSOR_SCALAR]
    assert scaled["open_engines"].tolist() == [1 << Engine.VECTOR | 1 << Engine.SCALAR, 0]
    assert not table["open_engines"][table["opcode"] != Opcode.TENSOR_SCALAR].any()


def test_a_row_names_the_tiles_of_its_parameters():
    def body(a):
        part, factor, offset = on_chip(a), tile((128, 1)), tile((128, 1))
        nisa.memset(factor, 2.0)
        nisa.memset(offset, 1.0)
        nisa.tensor_scalar(part, part, nl.multiply, factor, op1=nl.add, operand1=offset)
        nisa.tensor_scalar(part, part, nl.multiply, 2.0, op1=nl.add, operand1=offset)
        return a

    table = lowered(body, floats(128, 16)).program.instructions
    factor, offset = table["destination"][table["opcode"] == Opcode.MEMSET]
    scaled = table[table["opcode"] == Opcode.TENSOR_SCALAR]
    assert scaled["parameter"].tolist() == [factor, offset]
    assert scaled["second_parameter"].tolist() == [offset, -1]
    assert (scaled["second_source"] == -1).all()


def test_descriptors_follow_the_contiguous_bytes():
    def body(a):
        part = tile((128, 64))
        nisa.dma_copy(part, a[0:128, 0:64])
        nisa.dma_copy(a[0:128, 64:128], part)
        return a

    dmas = lowered(body, floats(128, 256)).program.dmas
    assert dmas["descriptor_bytes"].tolist() == [256, 256]
    assert dmas["bytes"].tolist() == [128 * 256] * 2


def test_writes_to_different_parts_of_a_tensor_do_not_wait_for_each_other():
    def body(a):
        result = nl.ndarray((256, 1024), dtype=a.dtype, buffer=nl.shared_hbm)
        part = on_chip(a)
        for row in range(2):
            for column in range(4):
                place = result[row * 128 : (row + 1) * 128, column * 256 : (column + 1) * 256]
                nisa.dma_copy(place, part)
        return result

    program = lowered(body, floats(128, 256)).program
    stores = program.instructions[1 + np.arange(8)]
    assert (stores["wait_count"] > 0).sum() <= 1


@pytest.mark.parametrize("overlap", [True, False])
def test_a_read_of_hbm_waits_for_the_write_that_it_overlaps(overlap):
    def body(a):
        result = nl.ndarray((256, 64), dtype=a.dtype, buffer=nl.hbm)
        part, again = on_chip(a), tile((128, 64))
        nisa.dma_copy(result[0:128], part)
        if overlap:
            nisa.dma_copy(again, result[0:128])
        else:
            nisa.dma_copy(again, a)
        return a

    program = as_written(body, floats(128, 64)).program
    assert bool(program.instructions["wait_count"][2]) is overlap


regions = st.tuples(
    st.integers(0, 2), st.integers(0, 5), st.integers(1, 3), st.integers(0, 5), st.integers(1, 3)
)
calls = st.lists(st.tuples(st.integers(0, 3), regions, st.lists(regions, min_size=0, max_size=3)), min_size=1,
                 max_size=30)  # fmt: skip


@given(calls=calls)
@settings(max_examples=200, deadline=None)
def test_every_conflict_is_ordered_by_edges_or_by_its_stream(calls):
    table, rows = [], []
    for engine, written, read in calls:
        slots = [_row(table, written), -1] + [_row(table, r) for r in read] + [-1] * (4 - len(read))
        rows.append([engine, 0, 0, *slots])
    rows, table = np.array(rows, np.int32), np.array(table, np.int32)
    streams = rows[:, 0].copy()
    edges = find_dependencies(
        rows, table, np.ones(3, bool), np.array([0, 2, 4, 6]), np.zeros(4, np.int64), np.zeros(0, np.int64),
        streams, np.ones(4, bool),
    )  # fmt: skip
    before = _reachable(len(rows), streams, edges[0], edges[1])
    for late in range(len(rows)):
        for early in range(late):
            if _conflict(rows[early], rows[late], table):
                assert before[late, early], (early, late)


def _row(table, region):
    buffer, line, lines, low, width = region
    table.append([buffer, line, line + lines, low, low + width])
    return len(table) - 1


def _reachable(count, streams, consumers, producers):
    before = np.zeros((count, count), bool)
    for row in range(count):
        own = [earlier for earlier in range(row) if streams[earlier] == streams[row]]
        for earlier in own[-1:] + [int(p) for c, p in zip(consumers, producers) if c == row]:
            before[row, earlier] = True
            before[row] |= before[earlier]
    return before


def _conflict(first, second, table):
    for a, writes_a in zip(first[3:], (1, 1, 0, 0, 0, 0)):
        for b, writes_b in zip(second[3:], (1, 1, 0, 0, 0, 0)):
            if a >= 0 and b >= 0 and (writes_a or writes_b):
                x, y = table[a], table[b]
                if x[0] == y[0] and x[1] < y[2] and y[1] < x[2] and x[3] < y[4] and y[3] < x[4]:
                    return True
    return False


@given(
    sizes=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 6)), min_size=1, max_size=25),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_tiles_that_live_together_never_share_memory(sizes, seed):
    order = np.random.default_rng(seed)

    def body(a):
        alive = []
        for width, keep in sizes:
            part = tile((128, width * 64))
            nisa.memset(part, 0.0)
            alive.append((part, keep))
            alive = [(t, k - 1) for t, k in alive if k > 0]
            for t, _ in alive:
                if order.random() < 0.7:
                    nisa.tensor_copy(t, t)
        return a

    (trace,) = Kernel(body, core=CORE).run(floats(4, 4), values=False).traces
    rows, table = trace.row_table(), trace.region_table()
    places = allocate(make_body(trace))
    lives = {}
    for index, row in enumerate(rows):
        for region in row[3:]:
            if region >= 0:
                lives.setdefault(int(table[region, 0]), []).append(index)
    spans = [(places.address[b], places.address[b] + trace.buffers[b].pitch_bytes, min(u), max(u))
             for b, u in lives.items()]  # fmt: skip
    for i, (low, high, first, last) in enumerate(spans):
        assert 0 <= low < high <= CORE.sbuf_bytes_per_partition
        for other_low, other_high, other_first, other_last in spans[i + 1 :]:
            together = first <= other_last and other_first <= last
            assert not together or high <= other_low or other_high <= low


def test_equal_calls_are_kept_once():
    def body(a):
        part = on_chip(a)
        for _ in range(3000):
            nisa.tensor_scalar(part, part, nl.add, 1.0)
        return a

    done = Kernel(body, core=CORE).run(floats(128, 16), values=False)
    assert len(done.traces[0].calls) < 10
    assert len(lower(done.traces[0], "kernel").program.instructions) == 3001
