"""Idioms of published kernels of the older dialect: private names, tiles as offsets, masks over two axes."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_tools import compat
from neuron_tools.nki.errors import OutOfBoundsError


@pytest.fixture
def names():
    uninstall = compat.install()
    import neuronxcc.nki as nki
    import neuronxcc.nki.isa as nisa
    import neuronxcc.nki.language as nl

    yield nki, nl, nisa
    uninstall()


def numbers(*shape, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def test_a_mask_over_two_axes_bounds_a_flattened_load_and_store(names):
    nki, nl, _ = names
    rows, columns, folds = 2, 37, 4
    width = -(-columns // folds)

    @nki.jit
    def fold_and_back(x):
        result = nl.ndarray((rows * columns,), dtype=x.dtype, buffer=nl.shared_hbm)
        flat = x.reshape((rows * columns,))
        fold, place = nl.mgrid[0:folds, 0:width]
        for row in nl.affine_range(rows):
            positions = row * columns + fold * width + place
            mask = (row < rows) & (fold * width + place < columns) & (positions < rows * columns)
            tile = nl.load(flat[positions], mask=mask)
            nl.store(result[positions], tile, mask=mask)
        return result

    x = numbers(rows, columns)
    np.testing.assert_array_equal(fold_and_back(x), x.reshape(-1))
    assert len(fold_and_back.run(x).traces[0].row_table()) == 2 * rows


def test_a_masked_access_that_still_leaves_the_tensor_is_refused(names):
    nki, nl, _ = names

    @nki.jit
    def kernel(x):
        first, second = nl.mgrid[0:4, 0:10]
        return nl.load(x[first * 10 + second], mask=(first * 10 + second < 39) & (first + second < 20))

    with pytest.raises(
        Exception, match=r"a masked index reaches 0 to 38, but the dimension .* has 37 elements"
    ):
        kernel(numbers(37))


def test_a_loaded_number_is_an_offset_in_an_index_expression(names):
    nki, nl, nisa = names

    @nki.jit
    def rows_from(x, start, shift):
        first = nl.load(start).reshape((1, 1)) + shift
        row, column = nl.arange(4)[:, None], nl.arange(x.shape[1])[None, :]
        result = nl.ndarray((4, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=result[row, column], src=x[row + first, column])
        return result

    x = numbers(16, 8)
    np.testing.assert_array_equal(rows_from(x, np.array([3], np.int32), 2), x[5:9])


def test_a_tile_is_repeated_along_the_free_dimensions_that_it_lacks(names):
    nki, nl, nisa = names

    @nki.jit
    def scale(x, factors):
        tile, factor = nl.load(x), nl.load(factors)
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(result, nisa.tensor_tensor(tile, factor, nl.multiply))
        return result

    x, factors = numbers(16, 3, 5), numbers(16, 3)
    np.testing.assert_array_equal(scale(x, factors), x * factors[:, :, None])


def test_instances_that_exchange_data_run_on_a_core_each(names):
    nki, nl, _ = names
    from neuronxcc.nki._private.private_api import sendrecv

    @nki.jit
    def largest(x):
        mine = nl.load(x[nl.program_id(0)])
        other = nl.ndarray(mine.shape, dtype=mine.dtype)
        sendrecv(src=mine, dst=other, send_to_rank=1 - nl.program_id(0),
                 recv_from_rank=1 - nl.program_id(0), pipe_id=0)  # fmt: skip
        result = nl.ndarray(mine.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        if nl.program_id(0) == 0:
            nl.store(result, nl.maximum(mine, other))
        return result

    x = numbers(2, 8, 16)
    np.testing.assert_array_equal(largest[2](x), x.max(0))
    assert len(largest[2].run(x).traces) == 2


def test_known_instructions_can_be_given_as_bytes(names):
    nki, nl, nisa = names
    from neuronxcc.nki._private.private_api import inline_asm_bytes

    text = ("f2_10_00_00_{{events:DATAPATH}}_80_0a_08_00_{{srcs[0]:TENSOR3D}}_{offset}_00_00_00_00_{padding}"
            "_{{dsts[0]:TENSOR3D}}_00_00_00_00")  # fmt: skip

    @nki.jit
    def positions(x, code):
        tile = nl.load(x).reshape((128, 1, x.shape[1]))
        found = nl.ndarray((128, 1, x.shape[1] + 1), dtype=nl.int32)
        inline_asm_bytes(dsts=[found], srcs=[tile], engine=nisa.gpsimd_engine, asm_bytes=code)
        result = nl.ndarray((1, x.shape[1] + 1), dtype=nl.int32, buffer=nl.shared_hbm)
        nl.store(result, found[0:1, 0, :])
        return result

    x = np.zeros((128, 6), np.float32)
    x[0, [1, 4]] = 1
    code = text.format(offset="00_01_00_00", padding="fe_ff_ff_ff")
    np.testing.assert_array_equal(positions(x, code)[0], [257, 260, -2, -2, -2, -2, 2])
    with pytest.raises(Exception, match="instruction 0xf3 is not known here"):
        positions(x, "f3" + code[2:])


@pytest.mark.parametrize(
    "module",
    [
        "neuronxcc.nki.nccl",
        "neuronxcc.nki._private.private_api",
        "neuronxcc.nki.compiler.backends.neuron.dimensions",
        "neuronxcc.starfish.support.dtype",
    ],
)
def test_modules_that_published_kernels_import(names, module):
    import importlib

    found = importlib.import_module(module)
    assert all(getattr(found, name) is not None for name in found.__all__)


def test_a_grid_of_virtual_cores_runs_side_by_side(names):
    nki, nl, _ = names
    from neuronxcc.nki.compiler.backends.neuron.dimensions import VNC

    @nki.jit
    def ids(x):
        result = nl.ndarray((2, 1), dtype=nl.int32, buffer=nl.shared_hbm)
        tile = nl.full((1, 1), nl.program_id(0), dtype=nl.int32)
        nl.store(result[nl.ds(nl.program_id(0), 1), :], tile)
        return result

    assert ids[VNC(2)](numbers(1, 1)).ravel().tolist() == [0, 1]
    assert len(ids[VNC(2)].run(numbers(1, 1)).traces) == 2


def turns(names, depth):
    """A kernel that loads three blocks ahead of using them, in tiles that take turns at `depth` addresses."""
    nki, nl, _nisa = names

    @nki.jit
    def kernel(x):
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        placed = nki.compiler.sbuf.mod_alloc(base_addr=0, num_free_tiles=(depth,))
        tiles = nl.ndarray((4, nl.par_dim(128), 64), dtype=x.dtype, buffer=placed)
        for first in range(2):
            tiles[first] = nl.load(x[first])
        for block in range(4):
            nl.store(result[block], value=tiles[block])
            if block + 2 < 4:
                tiles[block + 2] = nl.load(x[block + 2])
        return result

    return kernel


def test_blocks_that_take_turns_at_an_address_are_allowed(names):
    from neuron_tools.nki.lowering import lower

    x = numbers(4, 128, 64)
    done = turns(names, 2).run(x)
    np.testing.assert_array_equal(done.outputs, x)
    assert len(lower(done.traces[0], "turns").program.dmas) == 8


def test_a_block_that_is_overwritten_before_it_is_read_is_refused(names):
    from neuron_tools.nki.errors import RaceError
    from neuron_tools.nki.lowering import lower

    trace = turns(names, 1).run(numbers(4, 128, 64)).traces[0]
    with pytest.raises(RaceError, match=r"\(block 0\) is read, but .*\(block 1\).* same address"):
        lower(trace, "turns")


def test_a_grid_names_its_axes_in_order(names):
    nki, nl, nisa = names

    @nki.jit
    def positions():
        grid = nl.mgrid[0:4, 0:3, 0:5, 0:2]
        result = nl.ndarray((4, 3, 5, 2), dtype=nl.int32, buffer=nl.shared_hbm)
        nl.store(result, nisa.iota(100 * grid.p + 1000 * grid.x + 10 * grid.y + grid.z, dtype=nl.int32))
        return result

    p, x, y, z = np.mgrid[0:4, 0:3, 0:5, 0:2]
    np.testing.assert_array_equal(positions(), 100 * p + 1000 * x + 10 * y + z)


def test_a_loop_reduction_keeps_a_total_for_each_iteration_of_the_other_loops(names):
    nki, nl, _ = names

    @nki.jit
    def sums(x):
        result = nl.ndarray((2, 3, 4, 8), dtype=x.dtype, buffer=nl.shared_hbm)
        for outer in nl.affine_range(2):
            totals = nl.ndarray((3, nl.par_dim(4), 8), dtype=x.dtype, buffer=nl.sbuf)
            for reduced in nl.affine_range(5):
                for inner in nl.affine_range(3):
                    tile = nl.load(x[outer, reduced, inner])
                    totals[inner] = nl.loop_reduce(tile, op=np.add, loop_indices=[reduced])
            for inner in nl.affine_range(3):
                nl.store(result[outer, inner], totals[inner])
        return result

    x = numbers(2, 5, 3, 4, 8)
    np.testing.assert_allclose(sums(x), x.sum(1), rtol=1e-6)
    np.testing.assert_allclose(nki.simulate_kernel(sums, x), x.sum(1), rtol=1e-6)


def test_a_loop_reduction_may_name_its_loops_in_any_order(names):
    nki, nl, _ = names

    @nki.jit
    def sums(x):
        result = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.shared_hbm)
        total = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.sbuf)
        for i in nl.affine_range(2):
            for j in nl.affine_range(3):
                total[...] = nl.loop_reduce(nl.load(x[i, j]), op=np.add, loop_indices=[j, i])
        nl.store(result, total)
        return result

    x = numbers(2, 3, 4, 8)
    np.testing.assert_allclose(sums(x), x.sum((0, 1)), rtol=1e-6)


def test_a_loop_reduction_leaves_out_masked_iterations(names):
    nki, nl, _ = names

    @nki.jit
    def sums(x):
        result = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.shared_hbm)
        total = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.sbuf)
        for i in nl.affine_range(4):
            total[...] = nl.loop_reduce(nl.load(x[i]), op=np.add, loop_indices=[i], mask=i < 2)
        nl.store(result, total)
        return result

    x = numbers(4, 4, 8)
    np.testing.assert_allclose(sums(x), x[0] + x[1], rtol=1e-6)


def test_a_tile_of_offsets_moves_an_index_expression(names):
    nki, nl, nisa = names

    @nki.jit
    def pick(x, offsets):
        result = nl.ndarray((16, 4), dtype=x.dtype, buffer=nl.shared_hbm)
        tile, places = nl.load(x), nl.load(offsets)
        picked = nl.ndarray((16, 4), dtype=x.dtype, buffer=nl.sbuf)
        row, column = nl.mgrid[0:16, 0:1]
        for i in nl.affine_range(4):
            picked[row, i] = nisa.tensor_copy_dynamic_src(tile[row, places[0, i] + column])
        nl.store(result, picked)
        return result

    x, offsets = numbers(16, 32), np.array([[7, 0, 31, 7]], np.int32)
    np.testing.assert_array_equal(pick(x, offsets), x[:, offsets[0]])


def test_a_one_column_tile_indexes_by_partition_beside_wider_expressions(names):
    nki, nl, _ = names

    @nki.jit
    def gather(x, rows):
        result = nl.ndarray((8, 3, 5), dtype=x.dtype, buffer=nl.shared_hbm)
        chosen = nl.load(rows)
        middle, last = nl.arange(3)[None, :, None], nl.arange(5)[None, None, :]
        nl.store(result, nl.load(x[chosen[nl.arange(8)[:, None], 0], middle, last]))
        return result

    x, rows = numbers(20, 3, 5), np.arange(19, 3, -2, dtype=np.int32)[:, None]
    np.testing.assert_array_equal(gather(x, rows), x[rows[:, 0]])


def test_tiles_are_compared_elementwise_and_their_results_mask_writes(names):
    nki, nl, _ = names

    @nki.jit
    def add_where_valid(x, rows, y):
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(result, nl.load(x))
        places = nl.load(rows)
        valid = (places != np.iinfo(places.dtype).max).astype(nl.int1)
        columns = nl.arange(x.shape[1])[None, :]
        nl.atomic_rmw(result[nl.minimum(places, 7), columns], value=nl.load(y), op=np.add, mask=valid)
        return result

    x, y = numbers(8, 6), np.ones((8, 6), np.float32)
    rows = np.array([[3], [2], [2**31 - 1], [0], [2], [7], [2**31 - 1], [1]], np.int32)
    want = x.copy()
    np.add.at(want, rows[rows < 8], y[rows[:, 0] < 8])
    np.testing.assert_allclose(add_where_valid(x, rows, y), want, rtol=1e-6)


def test_equality_with_what_is_no_number_stays_identity(names):
    nki, nl, _ = names

    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        assert tile != None and not tile == None  # noqa: E711, PT018, SIM201
        assert [tile].index(tile) == 0
        result = nl.ndarray(x.shape, dtype=nl.uint8, buffer=nl.shared_hbm)
        nl.store(result, tile == tile * 1.0)
        return result

    np.testing.assert_array_equal(kernel(numbers(4, 4)), 1)


def test_a_simulated_kernel_may_return_a_tile_on_chip(names):
    nki, nl, _ = names

    def body(x):
        return nl.exp(nl.load(x))

    x = numbers(4, 8)
    np.testing.assert_allclose(nki.jit(body, mode="simulation")(x), np.exp(x), rtol=1e-6)
    with pytest.raises(Exception, match=r"returns a tile in sbuf; copy it into a tensor in HBM"):
        nki.jit(body)(x)


def test_instructions_of_the_last_releases_are_there(names):
    nki, nl, nisa = names

    @nki.jit
    def running_sum(x):
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar_cumulative(src=nl.load(x), dst=tile, op0=nl.add, op1=nl.add, imm0=np.float32(1.0))
        nl.store(result, tile)
        return result

    x = numbers(8, 16)
    np.testing.assert_allclose(running_sum(x), np.cumsum(x + 1, 1), rtol=1e-5, atol=1e-5)


def test_a_mask_that_is_no_rectangle_leaves_rows_of_a_scatter_out(names):
    nki, nl, _ = names

    @nki.jit
    def scatter(x, rows, chosen):
        result = nl.ndarray((12, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(result, nl.zeros((12, 6), dtype=x.dtype, buffer=nl.sbuf))
        columns = nl.arange(6)[None, :]
        nl.store(result[nl.load(rows), columns], nl.load(x), mask=nl.load(chosen))
        return result

    x, rows = numbers(8, 6), np.array([[11], [4], [0], [99], [5], [6], [7], [99]], np.int32)
    chosen = (rows < 12).astype(np.uint8)
    want = np.zeros((12, 6), np.float32)
    want[rows[rows < 12]] = x[rows[:, 0] < 12]
    np.testing.assert_array_equal(scatter(x, rows, chosen), want)


def test_a_slice_may_reach_outside_where_a_mask_cuts_it_off(names):
    nki, nl, _ = names

    @nki.jit
    def doubled(a):
        result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        for block in nl.affine_range(2):
            inside = block * 128 + nl.arange(128)[:, None] < a.shape[0]
            rows = nl.ds(block * 128, 128)
            nl.store(result[rows], nl.load(a[rows, 0:64], mask=inside) * 2, mask=inside)
        return result

    @nki.jit
    def unmasked(a):
        result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(result[0:128], nl.load(a[nl.ds(128, 128)]))
        return result

    a = np.random.default_rng(0).random((200, 64), np.float32)
    np.testing.assert_array_equal(doubled(a), a * 2)
    with pytest.raises(OutOfBoundsError, match="reaches 128 to 255") as caught:
        unmasked(a)
    assert caught.value.where.startswith(__file__)


def test_arguments_may_be_given_by_their_form(names):
    nki, nl, _ = names
    from neuronxcc.nki.typing import tensor

    @nki.benchmark(warmup=1, iters=2)
    def added(a, b):
        result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(result, nl.load(a) + nl.load(b))
        return result

    added(tensor[[128, 64], nl.float32], tensor[[128, 64], nl.bfloat16])
    assert added.benchmark_result.nc_latency.get_latency_percentile(50) > 0


def test_an_axis_of_zero_runs_once(names):
    nki, nl, _ = names

    @nki.jit
    def doubled(a):
        result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(result, nl.load(a) * 2)
        return result

    a = np.ones((128, 64), np.float32)
    np.testing.assert_array_equal(doubled[0](a), a * 2)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3"])
def test_arrays_are_cast_outside_kernels(names, name):
    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl

    seen = []

    @nki.jit
    def kernel(x):
        seen.append(x.dtype)
        return x

    wanted = getattr(nl, name)
    nki.simulate_kernel(kernel, nl.static_cast(np.full((8, 8), 1 / 3), wanted))
    assert seen == [wanted]


def test_loads_and_stores_leave_out_of_bounds_elements_out_where_they_say_so(names):
    nki, nl, nisa = names

    def kernel(mode):
        @nki.jit
        def gather_and_scatter(x, places):
            result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            nl.store(result, nl.zeros(x.shape, dtype=x.dtype))
            at = nl.load(places)
            rows, columns = nl.arange(4)[:, None], nl.arange(6)[None, :]
            tile = nl.full((4, 6), 9.0, dtype=x.dtype)
            tile[rows, columns] = nl.load(x[at[rows, 0], columns], **mode)
            nl.store(result[at[rows, 0], columns], tile, **mode)
            return result

        return gather_and_scatter

    x, places = numbers(8, 6), np.array([[5], [80], [0], [2]], np.int32)
    expected = np.zeros_like(x)
    expected[[5, 0, 2]] = x[[5, 0, 2]]
    np.testing.assert_array_equal(kernel({"mode": nisa.oob_mode.skip})(x, places), expected)
    with pytest.raises(OutOfBoundsError, match="out of bounds"):
        kernel({})(x, places)


def test_a_column_of_a_tile_gathers_and_scatters_rows_as_a_tile(names):
    nki, nl, _ = names

    @nki.jit
    def reorder(x, places):
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        rows = nl.load(places)
        for column in nl.affine_range(2):
            moved = nl.load(x[column, rows[:, column].as_tile()])
            nl.store(result[column, rows[:, column].as_tile()], value=nl.multiply(moved, 2.0))
        return result

    x = numbers(2, 16, 1)
    places = np.stack([np.random.default_rng(1).permutation(16) for _ in range(2)], axis=1).astype(np.uint32)
    np.testing.assert_array_equal(reorder(x, places), 2 * x)
