from __future__ import annotations

from pathlib import Path

import pytest

from neuron_tools import hardware
from neuron_tools.compat.neuronxcc.nki import isa as older_isa
from neuron_tools.compat.nki import isa as present_isa, language as present_language
from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.errors import (
    MissingApiError,
    NkiValidationError,
    OutOfBoundsError,
    OutOfMemoryError,
    RaceError,
    TracingError,
    UninitializedReadError,
)
from neuron_tools.nki.kernel import Kernel
from neuron_tools.nki.lowering import lower
from neuron_tools.records.program import Purpose
from tests.unit.nki.kernels import floats, on_chip, run_raw, tile

A = floats(128, 64)
HERE = str(Path(__file__).parent)


def refused(error, match, body, *arrays, target="trn2"):
    """The kernel is refused with this text, and with a line of this file."""

    def kernel(*tensors):
        body(*tensors)
        return tensors[0]

    with pytest.raises(error, match=match) as caught:
        run_raw(kernel, *(arrays or (A,)), target=target)
    assert caught.value.where.startswith(HERE)


BROKEN = {
    "too many partitions": ("needs 256 partitions", lambda a: tile((256, 4))),
    "a tile larger than SBUF": ("needs 400000 bytes", lambda a: tile((128, 100000))),
    "a tile larger than PSUM": ("needs 32768 bytes", lambda a: tile((128, 8192), buffer=nl.psum)),
    "an operand in HBM": (
        "data1 of shape .* lies in HBM",
        lambda a: nisa.tensor_tensor(tile((128, 64)), a, on_chip(a), nl.add),
    ),
    "two operands in PSUM": (
        "both operands from PSUM",
        lambda a: nisa.tensor_tensor(
            tile((128, 64)), on_chip(a, nl.float32, nl.psum), on_chip(a, nl.float32, nl.psum), nl.add
        ),
    ),
    "different sizes": (
        r"shapes \(128, 64\) and \(128, 32\)",
        lambda a: nisa.tensor_tensor(tile((128, 64)), on_chip(a), on_chip(a)[:, 0:32], nl.add),
    ),
    "GpSimd reaching PSUM": (
        "GpSimd cannot reach PSUM",
        lambda a: nisa.tensor_copy(
            tile((128, 64)), on_chip(a, nl.float32, nl.psum), engine=nisa.gpsimd_engine
        ),
    ),
    "bits of floats": (
        "bit patterns of integers",
        lambda a: nisa.tensor_tensor(tile((128, 64)), on_chip(a), on_chip(a), nl.bitwise_and),
    ),
    "mixed operators": (
        "two arithmetic or two bitwise",
        lambda a: nisa.tensor_scalar(
            tile((128, 64), nl.int32), tile((128, 64), nl.int32), nl.bitwise_and, 1, op1=nl.add, operand1=1.0
        ),
    ),
    "a wide scalar operand": (
        r"must be a number or a tile of shape \(128, 1\)",
        lambda a: nisa.tensor_scalar(tile((128, 64)), on_chip(a), nl.add, on_chip(a)),
    ),
    "matmul into SBUF": (
        "needs dst in PSUM",
        lambda a: nisa.nc_matmul(tile((64, 64)), on_chip(a), on_chip(a)),
    ),
    "matmul from PSUM": (
        "needs stationary in SBUF",
        lambda a: nisa.nc_matmul(tile((64, 64), buffer=nl.psum), on_chip(a, nl.float32, nl.psum), on_chip(a)),
    ),
    "a wide stationary operand": (
        "may have 128 free elements",
        lambda a: nisa.nc_matmul(tile((128, 64), buffer=nl.psum), tile((128, 129)), on_chip(a)),
    ),
    "a wide moving operand": (
        "may have 512 free elements",
        lambda a: nisa.nc_matmul(tile((64, 513), buffer=nl.psum), on_chip(a), tile((128, 513))),
    ),
    "a result of another shape": (
        r"gives \(64, 64\)",
        lambda a: nisa.nc_matmul(tile((32, 64), buffer=nl.psum), on_chip(a), on_chip(a)),
    ),
    "different contractions": (
        "contracts over the partitions",
        lambda a: nisa.nc_matmul(tile((64, 64), buffer=nl.psum), on_chip(a)[0:64], on_chip(a)),
    ),
    "fp32 with bf16": (
        "fp32 only with fp32",
        lambda a: nisa.nc_matmul(tile((64, 64), buffer=nl.psum), on_chip(a), tile((128, 64), nl.bfloat16)),
    ),
    "a large Vector transpose": (
        "at most 32 x 32",
        lambda a: nisa.nc_transpose(tile((64, 128)), on_chip(a), engine=nisa.vector_engine),
    ),
    "a start between quadrants": (
        "starts at partition 5",
        lambda a: nisa.tensor_copy(tile((8, 64)), on_chip(a)[5:13]),
    ),
    "a start for too many partitions": (
        "starts at partition 32",
        lambda a: nisa.tensor_copy(tile((96, 64)), on_chip(a)[32:128]),
    ),
    "reducing partitions": (
        "free dimensions only",
        lambda a: nisa.tensor_reduce(tile((1, 64)), nl.add, on_chip(a), axis=0),
    ),
    "an unknown operator": (
        "no operator 'frobnicate'",
        lambda a: nisa.tensor_tensor(tile((128, 64)), on_chip(a), on_chip(a), "frobnicate"),
    ),
    "DMA into PSUM": ("lies in PSUM", lambda a: nisa.dma_copy(tile((128, 64), buffer=nl.psum), a)),
    "DMA of other sizes": ("as many elements as it reads", lambda a: nisa.dma_copy(tile((128, 32)), a)),
    "too much for bn_stats": (
        "at most 512 elements",
        lambda a: nisa.bn_stats(tile((128, 6)), tile((128, 513))),
    ),
    "too little for max8": ("8 to 16384 elements", lambda a: nisa.max8(tile((128, 8)), on_chip(a)[:, 0:4])),
    "MX on an older core": (
        "needs NeuronCore-v4",
        lambda a: nisa.quantize_mx(
            tile((128, 16), nl.float8_e4m3fn_x4), tile((128, 64), nl.bfloat16), tile((128, 16), nl.uint8)
        ),
    ),
    "a pattern of another size": ("has 10 elements", lambda a: nisa.iota(tile((128, 4)), pattern=[[1, 10]])),
    "sendrecv on one core": (r"kernel\[2\]", lambda a: nisa.sendrecv(on_chip(a), tile((128, 64)), 0, 0, 0)),
    "an empty register": ("nothing was loaded", lambda a: nl.add(1, nisa.register_alloc())),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_the_hardware_forbids_is_refused_with_the_line(name):
    match, body = BROKEN[name]
    refused(NkiValidationError, match, body)


def test_reading_what_nothing_wrote_is_refused():
    refused(
        UninitializedReadError,
        "nothing has been written",
        lambda a: nisa.tensor_copy(tile((128, 64)), tile((128, 64))),
    )


def test_reading_a_part_that_was_written_is_allowed():
    def kernel(a):
        whole, part = tile((128, 64)), tile((128, 16))
        nisa.dma_copy(whole[:, 16:32], a[:, 16:32])
        nisa.tensor_copy(part, whole[:, 16:32])
        with pytest.raises(UninitializedReadError):
            nisa.tensor_copy(part, whole[:, 32:48])
        return a

    assert not run_raw(kernel, A).traces[0].warnings


def test_reading_a_little_that_was_not_written_is_a_warning():
    def kernel(a):
        whole, other = tile((128, 64)), tile((128, 64))
        nisa.dma_copy(whole[:, 0:60], a[:, 0:60])
        nisa.tensor_copy(other, whole)
        return a

    (warning,) = run_raw(kernel, A).traces[0].warnings
    assert __file__ in warning


def test_parts_written_one_by_one_make_a_whole():
    def kernel(a):
        whole, other = tile((128, 64)), tile((128, 64))
        for start in range(0, 64, 4):
            nisa.dma_copy(whole[:, start : start + 4], a[:, start : start + 4])
        nisa.tensor_copy(other, whole)
        return a

    assert not run_raw(kernel, A).traces[0].warnings


def test_an_index_outside_is_refused_unless_masked():
    refused(OutOfBoundsError, "outside tensor", lambda a: nisa.dma_copy(tile((128, 64)), a[0:128, 32:96]))


@pytest.mark.parametrize("start", [32, -80])
def test_writing_outside_is_refused(start):
    refused(
        OutOfBoundsError, "outside tensor", lambda a: nisa.memset(tile((128, 64))[:, start : start + 64], 0.0)
    )


def lowered(body, *arrays):
    def kernel(a):
        body(a)
        return a

    (trace,) = Kernel(kernel, core=hardware.get("trn2")).run(*(arrays or (A,)), values=False).traces
    return lower(trace, "kernel")


def test_tiles_that_do_not_fit_together_are_spilled():
    def body(a):
        tiles = [tile((128, 4096)) for _ in range(15)]
        for each in tiles:
            nisa.activation(each, nl.exp, a_tile)
        for each in tiles:
            nisa.tensor_copy(each, each)

    def kernel(a):
        nonlocal a_tile
        a_tile = tile((128, 4096))
        nisa.memset(a_tile, 1.0)
        body(a)

    a_tile = None
    purposes = lowered(kernel).program.dmas["purpose"].tolist()
    assert purposes.count(Purpose.SPILL_SAVE) == purposes.count(Purpose.SPILL_RELOAD) > 0


def test_operands_of_one_instruction_that_do_not_fit_are_refused():
    def body(a):
        source, result = (tile((128, 40000)) for _ in range(2))
        nisa.memset(source, 1.0)
        nisa.tensor_copy(result, source)

    with pytest.raises(OutOfMemoryError, match="SBUF is full: the operands of one instruction") as caught:
        lowered(body)
    assert caught.value.where.startswith(HERE)


def test_psum_has_eight_banks():
    def body(a, count=9):
        tiles = [tile((128, 512), buffer=nl.psum) for _ in range(count)]
        source = tile((128, 512))
        nisa.memset(source, 1.0)
        for each in tiles:
            nisa.tensor_copy(each, source)
        for each in tiles:
            nisa.tensor_copy(source, each)  # which no copy may do before all have read it

    with pytest.raises(OutOfMemoryError, match="PSUM is full"):
        lowered(body)
    lowered(lambda a: body(a, 8))


@pytest.mark.parametrize(
    ("shape", "buffer", "address"),
    [
        ((128, 64), nl.sbuf, (0, hardware.get("trn2").sbuf_bytes_per_partition - 252)),
        ((128, 64), nl.psum, (0, 16 * 1024)),
        ((64, 64), nl.sbuf, (96, 0)),
    ],
)
def test_a_tile_placed_beyond_the_end_is_refused(shape, buffer, address):
    refused(
        NkiValidationError,
        "place it lower",
        lambda a: nl.ndarray(shape, nl.float32, buffer, address=address),
    )


@pytest.mark.parametrize(("start", "fits"), [(0, True), (512, True), (256, False)])
def test_a_result_of_the_tensor_engine_stays_in_one_bank(start, fits):
    def body(a):
        whole = tile((64, 1024), buffer=nl.psum)
        moving = tile((128, 512))
        nisa.memset(moving, 1.0)
        nisa.nc_matmul(whole[:, start : start + 512], on_chip(a), moving)

    if fits:
        lowered(body)
        return
    with pytest.raises(NkiValidationError, match=r"nc_matmul writes one PSUM bank of 2048 bytes") as caught:
        lowered(body)
    assert caught.value.where.startswith(HERE)


def test_tiles_used_one_after_another_share_memory():
    def body(a):
        for _ in range(50):
            each = tile((128, 4096))
            nisa.memset(each, 1.0)
            nisa.tensor_copy(each, each)

    lowered(body)


def test_placed_tiles_that_overwrite_each_other_are_refused():
    def body(a):
        first = nl.ndarray((128, 64), nl.float32, nl.sbuf, name="first", address=(0, 1024))
        second = nl.ndarray((128, 64), nl.float32, nl.sbuf, name="second", address=(0, 1152))
        nisa.memset(first, 1.0)
        nisa.memset(second, 2.0)
        nisa.tensor_copy(tile((128, 64)), first)

    with pytest.raises(RaceError, match="first is read, but second") as caught:
        lowered(body)
    assert caught.value.where.startswith(HERE)


def test_small_tiles_placed_side_by_side_take_turns():
    def body(a):
        tiles = [nl.ndarray((128, 2), nl.float32, nl.sbuf, address=(0, 1024 + 8 * n)) for n in range(3)]
        nisa.memset(tiles[0], 1.0)
        for _ in range(4):
            for source, target in zip(tiles, [*tiles[1:], tiles[0]]):
                nisa.tensor_copy(target, source)

    lowered(body)


def test_placed_tiles_used_one_after_another_are_allowed():
    def body(a):
        for name in ("first", "second"):
            each = nl.ndarray((128, 64), nl.float32, nl.sbuf, name=name, address=(0, 1024))
            nisa.memset(each, 1.0)
            nisa.tensor_copy(tile((128, 64)), each)

    lowered(body)


@pytest.mark.parametrize(
    ("module", "name", "nearby"),
    [
        (present_isa, "tensor_tensr", "nisa.tensor_tensor"),
        (present_language, "afine_range", "nl.affine_range"),
        (older_isa, "register_alloc", r"nki\.isa\.register_alloc"),
        (present_isa, "multiply", r"nki\.language\.multiply"),
        (present_language, "arange", r"neuronxcc\.nki\.language\.arange"),
    ],
)
def test_a_missing_name_says_what_exists_nearby(module, name, nearby):
    with pytest.raises(MissingApiError, match=rf"{name} does not exist.*dialect.*{nearby}") as caught:
        getattr(module, name)
    assert caught.value.where.startswith(HERE)
    assert not hasattr(module, name)


def test_language_functions_need_a_kernel():
    with pytest.raises(TracingError, match=r"@nki\.jit"):
        tile((4, 4))


def test_values_of_special_numbers_raise_no_warnings(recwarn):
    def kernel(a):
        result = tile((128, 64))
        nisa.memset(result, 0.0)
        nisa.reciprocal(result, result)
        nisa.activation(result, nl.log, result)
        return a

    run_raw(kernel, A)
    assert not recwarn.list
