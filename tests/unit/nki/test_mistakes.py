"""Typical mistakes, each in a plainly called kernel: refused at its line, with a reason and a remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from neuron_tools.compat.neuronxcc.nki import isa as older_isa, language as older_nl
from neuron_tools.compat.nki import isa as nisa, language as nl
from neuron_tools.nki import isa, language
from neuron_tools.nki.capacity import SpillWarning
from neuron_tools.nki.core_race import RaceWarning
from neuron_tools.nki.errors import NkiError, TracingError, UninitializedReadError
from neuron_tools.nki.index import MaskTruthWarning
from neuron_tools.nki.kernel import Kernel, jit
from neuron_tools.nki.loops import EmptyLoopWarning
from neuron_tools.nki.older.language import par_dim
from neuron_tools.nki.returned import UnwrittenWarning

Body = Callable[[Any], Any]
untyped_nl: Any = nl
untyped_nisa: Any = nisa
untyped_older_nl: Any = older_nl
untyped_older_isa: Any = older_isa
"""The language where calls are wrong in a way that a type checker would find."""


def tile(*shape: int, dtype: Any = nl.float32, buffer: Any = nl.sbuf, filled: bool = True) -> Any:
    """A tile, of ones unless it is to stay unwritten."""
    made = nl.ndarray(shape, dtype, buffer)
    if filled:
        nisa.memset(made, 1)
    return made


def overfull(buffer: Any, count: int, columns: int) -> None:
    tiles = [tile(128, columns, buffer=buffer) for _ in range(count)]
    for each in tiles:
        nisa.tensor_scalar(each, each, nl.add, 1.0)


def matmul(dst: Any, stationary: Any, moving: Any) -> None:
    nisa.nc_matmul(dst, stationary, moving)


def integers(*shape: int) -> Any:
    return tile(*shape, dtype=nl.int32)


def psum(*shape: int, dtype: Any = nl.float32) -> Any:
    return tile(*shape, dtype=dtype, buffer=nl.psum, filled=False)


def far_rows() -> Any:
    """Indices of rows past the end of the input."""
    rows = tile(8, 1, dtype=nl.int32)
    nisa.memset(rows, 200)
    return rows


def many_rows() -> Any:
    return nl.ndarray((256, 4), nl.float32, nl.shared_hbm)


BF16 = nl.bfloat16
MISTAKES: dict[str, tuple[str, Body]] = {
    "summing products in integers": (
        "sums in fp32 in PSUM, but dst is int32",
        lambda x: matmul(psum(64, 64, dtype=nl.int32), tile(64, 64), tile(64, 64)),
    ),
    "multiplying integers": (
        "multiplies floats.*int32; convert it first",
        lambda x: matmul(psum(64, 64), tile(64, 64, dtype=nl.int32), tile(64, 64, dtype=nl.int32)),
    ),
    "more than SBUF, one tile placed": (
        "SBUF is full.*use smaller tiles",
        lambda x: (nl.ndarray((8, 8), nl.float32, address=(0, 0)), overfull(nl.sbuf, 8, 16384)),
    ),
    "more than PSUM": ("PSUM is full.*use smaller tiles", lambda x: overfull(nl.psum, 9, 512)),
    "a loop over a tensor's value": ("bound must be a number.*fori_loop", lambda x: list(nl.affine_range(x))),
    "too many partitions": ("needs 256 partitions.*at most 128", lambda x: tile(256, 4)),
    "one tile beyond a partition": ("needs 400000 bytes of each", lambda x: tile(128, 100000)),
    "a DMA out of PSUM": (
        "lies in PSUM; copy it",
        lambda x: nisa.dma_copy(tile(64, 64), tile(64, 64, buffer=nl.psum)),
    ),
    "a matmul into SBUF": (
        "needs dst in PSUM",
        lambda x: matmul(tile(64, 64), tile(64, 64, dtype=BF16), tile(64, 64, dtype=BF16)),
    ),
    "a matmul from PSUM": (
        "needs moving in SBUF",
        lambda x: matmul(psum(64, 64), tile(64, 64), tile(64, 64, buffer=nl.psum)),
    ),
    "contracting different lengths": (
        "contracts over the partitions",
        lambda x: matmul(psum(64, 64), tile(64, 64), tile(32, 64)),
    ),
    "a stationary operand too wide": (
        "may have 128 free elements.*tile it",
        lambda x: matmul(psum(128, 64), tile(64, 256), tile(64, 64)),
    ),
    "a moving operand too wide": (
        "may have 512 free elements.*tile it",
        lambda x: matmul(psum(64, 1024), tile(64, 64), tile(64, 1024)),
    ),
    "a product across two banks": (
        "writes one PSUM bank of 2048 bytes.*lies in two; let it begin at a bank",
        lambda x: matmul(psum(64, 1024)[:, 300:812], tile(64, 64), tile(64, 512)),
    ),
    "a placed product across two banks": (
        "lies in two; let it begin at a bank",
        lambda x: matmul(
            nl.ndarray((64, 512), nl.float32, nl.psum, address=(0, 1024)), tile(64, 64), tile(64, 512)
        ),
    ),
    "a transpose across two banks": (
        "nc_transpose writes one PSUM bank",
        lambda x: nisa.nc_transpose(psum(64, 1024)[:, 500:628], tile(128, 64)),
    ),
    "fp32 with bf16": (
        "fp32 only with fp32",
        lambda x: matmul(psum(64, 64), tile(64, 64), tile(64, 64, dtype=BF16)),
    ),
    "a result of the wrong shape": (
        r"gives \(64, 32\)",
        lambda x: matmul(psum(64, 64), tile(64, 64), tile(64, 32)),
    ),
    "reading what nothing wrote": (
        "nothing has been written there; write it first",
        lambda x: nisa.tensor_copy(tile(64, 64), tile(64, 64, filled=False)),
    ),
    "a slice past the end": ("slice 0:80 .*end it at 64", lambda x: tile(64, 64)[:, 0:80]),
    "an index past the end": ("index 64 of dimension 1", lambda x: tile(64, 64)[:, 64]),
    "too many indices": ("3 indices for a tensor of 2", lambda x: tile(64, 64)[0, 0, 0]),
    "a slice that goes backwards": ("positive step", lambda x: tile(64, 64)[:, 10:0:-1]),
    "a pattern past the end": (
        "reaches element",
        lambda x: nisa.memset(tile(64, 64).ap([[64, 64], [2, 64]]), 0),
    ),
    "computing in HBM": (
        "lies in HBM; copy it on chip",
        lambda x: nisa.tensor_scalar(tile(128, 64), x, nl.add, 1.0),
    ),
    "an activation in HBM": ("lies in HBM", lambda x: nisa.activation(tile(128, 64), nl.exp, x)),
    "different sizes": (
        "same partitions and elements|must have",
        lambda x: nisa.tensor_tensor(tile(64, 64), tile(64, 64), tile(64, 32), nl.add),
    ),
    "a DMA of different sizes": (
        "moves as many elements as it reads",
        lambda x: nisa.dma_copy(tile(64, 64), x),
    ),
    "two operands in PSUM": (
        "both operands from PSUM",
        lambda x: nisa.tensor_tensor(
            tile(64, 64), tile(64, 64, buffer=nl.psum), tile(64, 64, buffer=nl.psum), nl.add
        ),
    ),
    "GpSimd in PSUM": (
        "cannot reach PSUM; use",
        lambda x: nisa.tensor_copy(tile(64, 64), tile(64, 64, buffer=nl.psum), engine=nisa.gpsimd_engine),
    ),
    "an operator of two tiles on the Scalar engine": (
        "tensor_tensor runs on Vector or GpSimd, not on Scalar",
        lambda x: nisa.tensor_tensor(tile(8, 8), tile(8, 8), tile(8, 8), nl.add, engine=nisa.scalar_engine),
    ),
    "text as a scalar operand": (
        "a number or a tile of one element per partition, got '1'",
        lambda x: nisa.tensor_scalar(tile(8, 8), tile(8, 8), nl.add, "1"),  # type: ignore[arg-type]
    ),
    "fewer than eight maxima": (
        r"max8: dst must have 8 elements per partition, got shape \(8, 4\)",
        lambda x: nisa.max8(tile(8, 4), tile(8, 64)),
    ),
    "indices of fewer than eight values": (
        "nc_find_index8: vals must have 8 elements",
        lambda x: nisa.nc_find_index8(tile(8, 8, dtype=nl.uint32), tile(8, 64), tile(8, 4)),
    ),
    "an operand without an operator": (
        "operand1 has no op1; give it an operator",
        lambda x: nisa.tensor_scalar(tile(8, 8), tile(8, 8), nl.add, 1.0, operand1=2.0),
    ),
    "an engine by a wrong name": (
        "engine has no 'vektor'; it has tensor",
        lambda x: nisa.tensor_copy(tile(8, 8), tile(8, 8), engine="vektor"),  # type: ignore[arg-type]
    ),
    "two rows at a time of bf16": (
        "double_row multiplies fp8, but stationary is bfloat16",
        lambda x: nisa.nc_matmul(
            psum(64, 64),
            tile(64, 2, 64, dtype=BF16),
            tile(64, 2, 64, dtype=BF16),
            perf_mode="double_row",  # type: ignore[arg-type]
        ),
    ),
    "a shuffle from another quadrant": (
        "mask entry 40 is none of the 32 partitions",
        lambda x: nisa.nc_stream_shuffle(tile(32, 8), tile(32, 8), [40] * 32),
    ),
    "a gather by floats": (
        "takes indices as uint32, got float32",
        lambda x: nisa.nc_n_gather(tile(8, 8), tile(8, 8), tile(8, 8)),
    ),
    "a probability above one": (
        "a probability from 0 to 1, got 1.5",
        lambda x: nisa.dropout(tile(8, 8), tile(8, 8), 1.5),
    ),
    "a pattern as text": (
        r"takes a \[step, count\] for each dimension, got 'p f'",
        lambda x: tile(8, 8).ap("p f"),  # type: ignore[arg-type]
    ),
    "multiplying with @": ("multiply tiles with nisa.nc_matmul", lambda x: x @ x),
    "a transpose as in NumPy": ("no attribute 'T'; turn a tile with nisa.nc_transpose", lambda x: x.T),
    "a method that is not there": ("no attribute 'reshaped'; nearby: .*reshape", lambda x: x.reshaped(4)),
    "an element as a Python number": ("values are known on the device only", lambda x: x.item()),
    "a start between quarters": (
        "starts at partition 5",
        lambda x: nisa.tensor_copy(tile(8, 64), tile(64, 64)[5:13]),
    ),
    "bits of floats": (
        "bit patterns",
        lambda x: nisa.tensor_scalar(tile(64, 64), tile(64, 64), nl.bitwise_and, 1),
    ),
    "an operand per partition of another length": (
        "must be a number or a tile of shape",
        lambda x: nisa.tensor_scalar(tile(64, 64), tile(64, 64), nl.add, tile(32, 1)),
    ),
    "a bias per row of another length": (
        "bias",
        lambda x: nisa.activation(tile(64, 64), nl.exp, tile(64, 64), bias=tile(64, 2)),
    ),
    "a transpose too large": (
        "128",
        lambda x: nisa.nc_transpose(psum(128, 128), tile(128, 256)),
    ),
    "a reshape of another size": ("cannot reshape", lambda x: tile(64, 64).reshape((64, 65))),
    "moving the partitions by a view": ("only a transpose can", lambda x: tile(64, 64).permute((1, 0))),
    "broadcasting a full dimension": ("dimensions of size 1", lambda x: tile(64, 64).broadcast(1, 128)),
    "a buffer that is not there": ("no buffer", lambda x: nl.ndarray((8, 8), nl.float32, buffer="sram")),
    "a function that is not there": ("does not exist.*nearby", lambda x: nl.nonexistent_relu(tile(8, 8))),
    "an operator that is not there": (
        "operator|no ",
        lambda x: nisa.tensor_scalar(tile(8, 8), tile(8, 8), "plus", 1.0),
    ),
    "a descriptor mode that is not there": (
        r"dge_mode has no 7; it has unknown \(0\)",
        lambda x: nisa.dma_copy(tile(128, 64), x, dge_mode=7),
    ),
    "placed past the end of SBUF": (
        "place it lower",
        lambda x: nl.ndarray((128, 1024), nl.float32, nl.sbuf, address=(0, 229000)),
    ),
    "deciding by a tensor's value": ("values are known on the device only", lambda x: bool(tile(1, 1))),
    "a tensor as a number": ("values are known on the device only", lambda x: int(tile(1, 1))),
    "a tensor equal to a number": ("compare them there", lambda x: tile(8, 8) == 1),
    "an array of NumPy as an operand": (
        "dma_copy takes a tensor as src, but got an array of NumPy; pass it to the kernel",
        lambda x: nisa.dma_copy(tile(8, 8), np.ones((8, 8), np.float32)),  # type: ignore[arg-type]
    ),
    "an instruction's result as an operand": (
        "got the result of another instruction.*its dst",
        lambda x: nisa.tensor_copy(tile(8, 8), nisa.memset(tile(8, 8), 1)),  # type: ignore[arg-type]
    ),
    "nothing as an operand": (
        "tensor_tensor takes a tensor as data2, but got None",
        lambda x: nisa.tensor_tensor(tile(8, 8), tile(8, 8), None, nl.add),  # type: ignore[arg-type]
    ),
    "no operand of a binary operator": (
        "add needs operand0",
        lambda x: nisa.tensor_scalar(tile(8, 8), tile(8, 8), nl.add, None),
    ),
    "an activation on the Vector engine": (
        r"no operator exp.*nisa\.activation",
        lambda x: nisa.tensor_scalar(tile(8, 8), tile(8, 8), nl.exp, 0.0),
    ),
    "one operand for two": (
        "operator of two operands, got abs",
        lambda x: nisa.tensor_tensor(tile(8, 8), tile(8, 8), tile(8, 8), nl.abs),
    ),
    "filling with a tile": ("fills with one number", lambda x: nisa.memset(tile(8, 8), tile(8, 1))),
    "a shape divided with /": ("divide with //", lambda x: nl.ndarray((128, 64 / 2), nl.float32)),  # type: ignore[arg-type]
    "an empty shape": ("size below 1", lambda x: nl.ndarray((8, 0), nl.float32)),
    "64-bit floats on chip": ("no float64.*take float32", lambda x: tile(8, 8, dtype=np.float64)),
    "a loop over half iterations": ("whole number, got 2.5", lambda x: list(nl.affine_range(2.5))),
    "NumPy on a tile": ("use the function of nki.language", lambda x: np.exp(tile(8, 8))),
    "an argument by a name that is not there": (
        r"unexpected keyword argument 'source'; it takes \(dst, src, ",
        lambda x: untyped_nisa.tensor_copy(dst=tile(8, 8), source=tile(8, 8)),
    ),
    "an instruction without its dst": (
        r"missing 1 required positional argument: 'dst'; it takes \(dst, op, data",
        lambda x: untyped_nisa.activation(op=nl.exp, data=tile(8, 8)),
    ),
    "a memory by a misspelt name": (
        "unexpected keyword argument 'bufer'; it takes .*buffer=",
        lambda x: untyped_nl.ndarray((8, 8), nl.float32, bufer=nl.psum),
    ),
    "text where a number belongs": (
        "tensor_reduce cannot take what it was given: invalid literal.*it takes",
        lambda x: untyped_nisa.tensor_reduce(tile(8, 1), nl.add, tile(8, 8), axis="x"),
    ),
    "text where a function takes a tile": (
        r"exp cannot take what it was given: .*; it takes \(x, dtype=None",
        lambda x: untyped_nl.exp("x"),
    ),
    "an axis by its name": (
        r"sum cannot take what it was given: .*; it takes \(x, axis, ",
        lambda x: untyped_nl.sum(tile(8, 8), axis="x"),
    ),
    "a type that is not there": (
        "no element type 'float33'; it has .*float32",
        lambda x: nl.ndarray((8, 8), "float33"),
    ),
    "the memory in the type's place": (
        "no element type nl.psum",
        lambda x: nl.ndarray((8, 8), nl.psum),
    ),
    "a limit of tiles that is not there": (
        "nl.tile_size has no 'pmaximum'; it has .*pmax",
        lambda x: nl.tile_size.pmaximum,
    ),
    "a comparison of tiles as a condition": (
        "a comparison of tiles is true.*nl.where",
        lambda x: 1 if tile(8, 8) > 0 else 0,
    ),
    "Python's max of a tile": ("nl.where", lambda x: max(tile(8, 8), 0)),
    "a tile as an array of NumPy": ("known on the device only", lambda x: np.asarray(tile(8, 8))),
    "loading an array of NumPy": (
        "nl.load takes a tensor as src, but got an array of NumPy",
        lambda x: untyped_nl.load(np.ones((8, 8), np.float32)),
    ),
    "loading more rows than there are partitions": (
        "needs 256 partitions",
        lambda x: untyped_nl.load(many_rows()),
    ),
    "a loop without bounds": (r"a loop takes \(stop\)", lambda x: nl.affine_range()),
    "a loop that stands still": (
        r"a step other than 0, got \(0, 8, step=0\)",
        lambda x: nl.affine_range(0, 8, step=0),
    ),
    "a loop's body without its argument": (
        "calls its body with one argument",
        lambda x: untyped_nl.fori_loop(0, 4, lambda: None),
    ),
    "a loop's body that is none": (
        "calls its body with one argument",
        lambda x: untyped_nl.fori_loop(0, 4, None),
    ),
    "a while loop over a Python condition": (
        "the first condition is True; load the condition",
        lambda x: untyped_nl.while_loop(True, lambda r: r),
    ),
    "a while loop whose body forgets the condition": (
        "what the body returns is None",
        lambda x: untyped_nl.while_loop(nisa.register_alloc(1), lambda r: None),
    ),
    "a scalar of the device as a shape": (
        "an NkiScalar's value is known on the device only.*fori_loop",
        lambda x: untyped_nl.ndarray((nisa.NkiScalar(8), 8)),
    ),
    "Python's range of a scalar of the device": (
        "bound of range.*fori_loop",
        lambda x: list(range(nisa.NkiScalar(8))),
    ),
    "dividing a scalar of the device": (r"knows \+, - and \* only", lambda x: nisa.NkiScalar(8) / 2),
    "filling bytes with 300": (
        "memset of 300 into uint8, which holds whole numbers from 0 to 255",
        lambda x: nisa.memset(tile(8, 8, dtype=nl.uint8), 300),
    ),
    "filling signed bytes with -300": (
        "memset of -300 into int8, which holds whole numbers from -128 to 127",
        lambda x: nisa.memset(tile(8, 8, dtype=nl.int8), -300),
    ),
    "filling integers with a half": ("memset of 0.5 into int32", lambda x: nisa.memset(integers(8, 8), 0.5)),
    "filling integers with not-a-number": (
        "memset of nan into int32",
        lambda x: nisa.memset(integers(8, 8), float("nan")),
    ),
    "a transpose into another type": (
        "data is float32 and dst bfloat16; declare dst as float32",
        lambda x: nisa.nc_transpose(psum(64, 64, dtype=BF16), tile(64, 64)),
    ),
    "a part of the array without its place": (
        "tile_size .* and tile_position .* together.*give both",
        lambda x: nisa.nc_matmul(psum(32, 64), tile(32, 32), tile(32, 64), tile_size=(32, 32)),
    ),
    "a part of the array between others": (
        r"begin at multiples of their size.*\(5, 0\)",
        lambda x: nisa.nc_matmul(
            psum(32, 64), tile(32, 32), tile(32, 64), tile_size=(32, 32), tile_position=(5, 0)
        ),
    ),
    "a part of the array that is too small": (
        "64 rows and 64 columns, but tile_size",
        lambda x: nisa.nc_matmul(
            psum(64, 64), tile(64, 64), tile(64, 64), tile_size=(32, 32), tile_position=(0, 0)
        ),
    ),
    "accumulating into what nothing has written": (
        "nothing has been written there; begin with accumulate=False",
        lambda x: nisa.nc_matmul(psum(64, 64), tile(64, 64), tile(64, 64), accumulate=True),
    ),
    "a DMA started by the Tensor engine": (
        "the engine that starts it .*got tensor",
        lambda x: nisa.dma_copy(tile(128, 64), x, engine=nisa.tensor_engine),
    ),
    "a priority that is not there": (
        r"priority from 0 \(highest\) to 3, got 9",
        lambda x: nisa.dma_copy(tile(128, 64), x, priority=9),
    ),
    "a mode for bounds that is not there": (
        r"oob_mode has no 'ignore'; it has error \(0\), skip",
        lambda x: untyped_nisa.dma_copy(tile(128, 64), x, oob_mode="ignore"),
    ),
    "a DMA transpose into the same shape": (
        r"dma_transpose of shape \(128, 64\) gives \(64, 128\)",
        lambda x: nisa.dma_transpose(tile(128, 64), x),
    ),
    "a DMA transpose that turns nothing": (
        r"axes \(1, 0\), got \(0, 1\); leave axes out",
        lambda x: nisa.dma_transpose(tile(128, 64), x, axes=(0, 1)),
    ),
    "a DMA sum of one tensor instead of a list": (
        "a list of 1 to 16 sources",
        lambda x: nisa.dma_compute(tile(128, 64), x),
    ),
    "a DMA product": ("dma_compute adds", lambda x: nisa.dma_compute(tile(128, 64), [x, x], nl.multiply)),
    "a DMA maximum": ("dma_compute adds", lambda x: nisa.dma_compute(tile(128, 64), [x, x], nl.maximum)),
    "a DMA sum of too many": (
        "1 to 16 sources, got 17",
        lambda x: nisa.dma_compute(tile(128, 64), [x] * 17, nl.add),
    ),
    "a DMA sum with a scale too few": (
        "a scale for each source, got 1 for 2",
        lambda x: nisa.dma_compute(tile(128, 64), [x, x], nl.add, [1.0]),
    ),
    "a DMA sum into PSUM": ("not PSUM; copy", lambda x: nisa.dma_compute(psum(128, 64), [x], nl.add)),
    "selecting by an operator that compares nothing": (
        "cmp_op must be a comparison, got add",
        lambda x: nisa.affine_select(tile(8, 8), [[1, 8]], 1, tile(8, 8), 0.0, cmp_op=nl.add),
    ),
    "integer bounds of a range": (
        "range_select takes bound0 as float32, got int32; convert it",
        lambda x: nisa.range_select(
            tile(8, 8), tile(8, 8), nl.greater_equal, nl.less, integers(8, 1), integers(8, 1)
        ),
    ),
    "gathering into another type": (
        "local_gather converts no elements: dst is bfloat16, but src_buffer float32",
        lambda x: nisa.local_gather(tile(16, 64, dtype=BF16), tile(16, 8), tile(16, 4, dtype=nl.uint16)),
    ),
    "a gather by signed indices": (
        "indices as uint32, got int32; convert it",
        lambda x: nisa.nc_n_gather(tile(8, 8), tile(8, 8), integers(8, 8)),
    ),
    "a DMA transpose into another type": (
        "dma_transpose converts no elements: dst is bfloat16, but src float32",
        lambda x: nisa.dma_transpose(tile(64, 128, dtype=BF16), x),
    ),
    "a dropout into another type": (
        "dropout converts no elements",
        lambda x: nisa.dropout(tile(8, 8, dtype=BF16), tile(8, 8), 0.5),
    ),
    "a pattern of five dimensions": (
        "up to 4 dimensions, got 5; join some",
        lambda x: nisa.iota(integers(8, 32), [[1, 2]] * 5, 0),
    ),
    "a signed predicate": (
        "predicate as uint8, uint16 or uint32, got int32",
        lambda x: nisa.tensor_copy_predicated(tile(8, 8), tile(8, 8), integers(8, 8)),
    ),
    "a scale in bf16": (
        "activation takes scale as float32, got bfloat16",
        lambda x: nisa.activation(tile(8, 8), nl.exp, tile(8, 8), scale=tile(8, 1, dtype=BF16)),
    ),
    "running sums of 32-bit integers": (
        "tensor_scalar_cumulative takes dst as float32, .*, got int32",
        lambda x: nisa.tensor_scalar_cumulative(integers(8, 8), integers(8, 8), nl.add, nl.add, 1),
    ),
    "a running condition": (
        "accumulates by add, .* not by logical_and; scan with",
        lambda x: nisa.tensor_scalar_cumulative(tile(8, 8), tile(8, 8), nl.add, nl.logical_and, 1.0),
    ),
    "indices of values as floats": (
        "dst as uint16 or uint32, got float32",
        lambda x: nisa.nc_find_index8(tile(8, 8), tile(8, 64), tile(8, 8)),
    ),
    "bounds of segments in bf16": (
        "sequence_bounds takes dst as float32 or int32, got bfloat16",
        lambda x: nisa.sequence_bounds(tile(1, 2, 8, dtype=BF16), tile(1, 8, dtype=BF16)),
    ),
    "indices of what is not zero as floats": (
        "nonzero_with_count takes dst as int32, got float32",
        lambda x: nisa.nonzero_with_count(tile(128, 65), tile(128, 64)),
    ),
    "a seed of 16 bits": (
        "src_seeds as uint32, int32 or float32, got uint16",
        lambda x: nisa.set_rng_seed(tile(1, 1, dtype=nl.uint16)),
    ),
    "a generator's state of floats": (
        "src_seeds as uint32, got float32",
        lambda x: nisa.rand_set_state(tile(128, 6), engine=nisa.engine.gpsimd),
    ),
    "a sum of what is selected": (
        "select_reduce reduces by nl.maximum alone, got add",
        lambda x: nisa.select_reduce(
            tile(8, 8), tile(8, 8, dtype=nl.uint8), tile(8, 8), 0.0, tile(8, 1), reduce_op=nl.add
        ),
    ),
    "a sum of a range": (
        "range_select reduces by nl.maximum alone, got add; call nisa.tensor_reduce",
        lambda x: nisa.range_select(
            tile(8, 8), tile(8, 8), nl.greater, nl.less, tile(8, 1), tile(8, 1), tile(8, 1), reduce_op=nl.add
        ),
    ),
    "a range that fills with zeros": (
        "fills with the least fp32 number .*, not with 0.0; leave on_false_value out",
        lambda x: nisa.range_select(
            tile(8, 8), tile(8, 8), nl.greater, nl.less, tile(8, 1), tile(8, 1), on_false_value=0.0
        ),
    ),
    "a range of integers": (
        "on_true_tile as float32, .*, got int32",
        lambda x: nisa.range_select(tile(8, 8), integers(8, 8), nl.greater, nl.less, tile(8, 1), tile(8, 1)),
    ),
    "a maximum of two columns": (
        r"reduce_res must be a number or a tile of shape \(8, 1\)",
        lambda x: nisa.tensor_scalar_reduce(tile(8, 8), tile(8, 8), nl.add, 1.0, nl.add, tile(8, 2)),
    ),
    "a barrier over a tile": (
        "core_barrier keeps data that cores share in HBM, .* lies in PSUM",
        lambda x: nisa.core_barrier(nl.ndarray((8, 8), nl.float32, buffer=nl.psum), (0, 1)),
    ),
    "a maximum on Trn2's Scalar engine": (
        "multiplies, adds, or multiplies and then adds, but got maximum; leave the engine out",
        lambda x: nisa.tensor_scalar(tile(8, 8), tile(8, 8), nl.maximum, 2.0, engine=nisa.engine.scalar),
    ),
    "an operand per partition in bf16": (
        "tensor_scalar takes operand0 as float32, got bfloat16; convert it",
        lambda x: nisa.tensor_scalar(tile(8, 8), tile(8, 8), nl.add, tile(8, 1, dtype=BF16)),
    ),
    "more valid indices than there are": (
        "64 indices for each 16 partitions, num_valid_indices is 65; give at most 64",
        lambda x: nisa.local_gather(
            tile(16, 64), tile(16, 8), tile(16, 4, dtype=nl.uint16), num_valid_indices=65
        ),
    ),
    "copying by floats": (
        "predicate as uint8, uint16 or uint32, got float32",
        lambda x: nisa.tensor_copy_predicated(tile(8, 8), tile(8, 8), tile(8, 8)),
    ),
    "selecting by floats": (
        "takes an integer predicate, got float32",
        lambda x: nisa.select_reduce(tile(8, 8), tile(8, 8), tile(8, 8), 0.0),
    ),
    "a local gather by 32-bit indices": (
        "index as uint16, got int32",
        lambda x: nisa.local_gather(tile(16, 8), tile(16, 8), integers(16, 8)),
    ),
    "a scan with a function of one number": (
        "op0 must be a function of two numbers, got exp",
        lambda x: nisa.tensor_tensor_scan(tile(8, 8), tile(8, 8), tile(8, 8), 0.0, nl.exp, nl.add),
    ),
    "bits and a tile in one instruction": (
        "op0 must be a function of two numbers, got bitwise_and",
        lambda x: nisa.scalar_tensor_tensor(
            integers(8, 8), integers(8, 8), nl.bitwise_and, 1, nl.add, integers(8, 8)
        ),
    ),
    "powers on the Vector engine": (
        "power on GpSimd, not on Vector; leave the engine out",
        lambda x: nisa.tensor_tensor(tile(8, 8), tile(8, 8), tile(8, 8), nl.power, nisa.vector_engine),
    ),
    "bits on GpSimd": (
        "bit patterns on the Vector engine only, not on GpSimd",
        lambda x: nisa.tensor_scalar(
            integers(8, 8), integers(8, 8), nl.bitwise_and, 1, engine=nisa.gpsimd_engine
        ),
    ),
    "a shift backwards": (
        "left_shift takes a whole number from 0 on, got -1",
        lambda x: nisa.tensor_scalar(integers(8, 8), integers(8, 8), nl.left_shift, -1),
    ),
    "an activation's maximum": (
        "activation sums its results, but reduce_op is maximum; use nl.add",
        lambda x: nisa.activation(
            tile(8, 8), nl.exp, tile(8, 8), reduce_op=nl.maximum, reduce_res=tile(8, 1)
        ),
    ),
    "a barrier of four cores": (
        r"the cores \(0, 1\) of a logical NeuronCore",
        lambda x: nisa.core_barrier(x, (0, 1, 2, 3)),
    ),
    "a register from a float": (
        "register_load reads an integer, but src is float32",
        lambda x: nisa.register_load(nisa.register_alloc(), tile(1, 1)),
    ),
    "a slice to a half": ("a whole number, got 4.5; divide", lambda x: tile(8, 8)[:, slice(0, 4.5)]),
    "a slice to a half of NumPy's": (
        r"a whole number, got .*4\.5.*; divide",
        lambda x: tile(8, 8)[:, slice(0, np.float32(4.5))],
    ),
    "every half element": ("a whole number, got 0.5", lambda x: tile(8, 8)[:, slice(0, 8, 0.5)]),
    "a sum over an axis that is not there": (
        r"axis 2 is outside a tile of shape \(8, 8\)",
        lambda x: nl.sum(tile(8, 8), axis=2),
    ),
    "sums in bf16": (
        "fp32 sums as they are before NeuronCore-v4, but dst is bfloat16; declare it nl.float32",
        lambda x: matmul(psum(64, 64, dtype=BF16), tile(64, 64), tile(64, 64)),
    ),
    "a predicated copy into another type": (
        "copies elements as they are, but src is float32 and dst bfloat16",
        lambda x: nisa.tensor_copy_predicated(tile(8, 8, dtype=BF16), tile(8, 8), tile(8, 8, dtype=nl.uint8)),
    ),
    "a DMA that multiplies into what it writes": (
        "adds to what dst holds, but dst_rmw_op is multiply",
        lambda x: nisa.dma_copy(x, tile(128, 64), dst_rmw_op=nl.multiply),
    ),
    "loading a tile": (
        r"HBM as src, but .* lies in sbuf; use the tile itself",
        lambda x: nl.load(tile(8, 8)),
    ),
    "storing into a tile": (
        "HBM as dst, but .* lies in sbuf; assign to the tile",
        lambda x: nl.store(tile(8, 8), tile(8, 8)),
    ),
    "an index out of bounds in a gather": (
        "out of bounds; use oob_mode",
        lambda x: nisa.dma_copy(tile(8, 64), x.vector_select(0, far_rows())),
    ),
}


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_mistake_is_refused_at_its_line(mistake: str) -> None:
    match, body = MISTAKES[mistake]

    def kernel(x: Any) -> Any:
        body(x)
        return x

    with pytest.raises(NkiError, match=match) as caught:
        jit(kernel)(np.ones((128, 64), np.float32))
    assert __file__ in caught.value.where


def test_returning_a_tile_names_the_return() -> None:
    def kernel(x: Any) -> Any:
        made = tile(64, 64)
        return made

    with pytest.raises(NkiError, match="returns a tile in sbuf; copy it") as caught:
        jit(kernel)(np.ones((128, 64), np.float32))
    assert caught.value.where.endswith("in kernel")


OLDER: dict[str, tuple[str, Body]] = {
    "a mask by a misspelt name": (
        r"load\(\) got an unexpected keyword argument 'masks'; it takes .*mask=",
        lambda x: untyped_older_nl.load(x, masks=untyped_older_nl.arange(128)[:, None] < 3),
    ),
    "a tile where the operator belongs": (
        r"activation cannot take what it was given.*it takes \(op, data",
        lambda x: untyped_older_isa.activation(untyped_older_nl.load(x), untyped_older_nl.exp),
    ),
    "an operator's option that is not there": (
        "unexpected keyword argument 'out'; it takes .*dtype",
        lambda x: untyped_older_nl.add(untyped_older_nl.load(x), 1.0, out=x),
    ),
    "turning a tile onto too many partitions": (
        "needs 256 partitions",
        lambda x: untyped_older_nl.transpose(untyped_older_nl.zeros((128, 256), dtype=nl.float32)),
    ),
    "a range of halves": (
        "nl.arange takes whole numbers, got .*divide with //",
        lambda x: untyped_older_nl.arange(12.5),
    ),
    "a gather by a tile of floats": (
        "a tile of float32 cannot be an index or a bound; convert it to nl.int32",
        lambda x: older_nl.load(x[older_nl.zeros((128, 1), nl.float32), older_nl.arange(64)[None, :]]),
    ),
    "equal tiles as a condition": (
        "to know whether a comparison of tiles is true",
        lambda x: 1 if older_nl.load(x) == older_nl.load(x) else 0,
    ),
    "another number as a condition": (
        "to know whether a comparison of tiles is true",
        lambda x: 1 if older_nl.load(x) != 0 else 0,
    ),
    "two partition dimensions": (
        "marks 2 dimensions as partitions",
        lambda x: older_nl.ndarray((par_dim(8), par_dim(8)), nl.float32),
    ),
    "storing nothing": (
        "missing 1 required positional argument: 'value'",
        lambda x: untyped_older_nl.store(x),
    ),
}
"""In the older dialect."""


def rows_below(count: int) -> Any:
    return older_nl.arange(128)[:, None] < count


@pytest.mark.parametrize("mistake", sorted(OLDER))
def test_mistake_in_the_older_dialect_is_refused_at_its_line(mistake: str) -> None:
    match, body = OLDER[mistake]

    def kernel(x: Any) -> Any:
        body(x)
        return x

    with pytest.raises(NkiError, match=match) as caught:
        Kernel(kernel, older_dialect=True)(np.ones((128, 64), np.float32))
    assert __file__ in caught.value.where


def test_two_masks_joined_with_and_are_told() -> None:
    def kernel(x: Any) -> Any:
        older_nl.load(x, mask=rows_below(3) and older_nl.arange(64)[None, :] < 3)
        return x

    with pytest.warns(MaskTruthWarning, match=r"kernel: .*only b is left; join masks with &"):
        Kernel(kernel, older_dialect=True)(np.ones((128, 64), np.float32))


RETURNED: dict[str, Any] = {
    "a number": 5, "a memory": nl.hbm, "a name": "sbuf", "an array": np.ones(2), "a set": {1},
    "a type": nl.bfloat16,
}  # fmt: skip


@pytest.mark.parametrize("what", sorted(RETURNED))
def test_returning_what_is_no_tensor_names_the_return(what: str) -> None:
    def kernel(x: Any) -> Any:
        return x, RETURNED[what]

    with pytest.raises(NkiError, match="a kernel returns tensors in HBM; return one") as caught:
        jit(kernel)(np.ones((128, 64), np.float32))
    assert caught.value.where.endswith("in kernel")


def test_nothing_beside_a_tensor_may_be_returned() -> None:
    def kernel(x: Any) -> Any:
        return x, None

    assert jit(kernel)(np.ones((128, 64), np.float32))[1] is None


def test_a_loop_that_ends_before_it_starts_is_told() -> None:
    def kernel(x: Any) -> Any:
        assert list(nl.affine_range(0)) == []
        for _ in nl.affine_range(-3):
            pass
        return x

    with pytest.warns(EmptyLoopWarning, match=r"kernel: the loop from 0 to -3 .* runs no iteration"):
        jit(kernel)(np.ones((128, 64), np.float32))


def test_errors_of_the_kernels_own_python_stay_as_they_are() -> None:
    def kernel(x: Any) -> Any:
        return x.shape[7]

    with pytest.raises(IndexError) as caught:
        jit(kernel)(np.ones((128, 64), np.float32))
    assert not isinstance(caught.value, NkiError)


class Helper:
    """A class of the kernel's, with a method named as a function of the language."""

    def copy(self, source: Any) -> Any:
        return source


def test_wrong_arguments_of_the_kernels_own_functions_stay_as_they_are() -> None:
    def load(source: Any) -> Any:
        return source

    untyped_helper: Any = Helper()
    untyped_load: Any = load
    for call in (untyped_helper.copy, untyped_load):

        def kernel(x: Any, call: Any = call) -> Any:
            call()
            return x

        with pytest.raises(TypeError, match=r"positional argument: 'source'$") as caught:
            jit(kernel)(np.ones((128, 64), np.float32))
        assert not isinstance(caught.value, NkiError)


def test_the_error_of_a_body_that_a_loop_calls_stays_as_it_is() -> None:
    def kernel(x: Any) -> Any:
        nl.fori_loop(0, 4, lambda i: int("x"))
        return x

    with pytest.raises(ValueError, match="invalid literal") as caught:
        jit(kernel)(np.ones((128, 64), np.float32))
    assert not isinstance(caught.value, NkiError)


def copied(x: Any, rows: int) -> Any:
    """A result of which `rows` rows are written."""
    result = nl.ndarray(x.shape, x.dtype, nl.shared_hbm, name="result")
    if rows:
        nisa.dma_copy(result[0:rows], x[0:rows])
    return result


def test_a_result_that_nothing_wrote_is_refused() -> None:
    def kernel(x: Any) -> Any:
        return copied(x, 0)

    with pytest.raises(UninitializedReadError, match=r"returns result .*nothing has been written") as caught:
        jit(kernel)(np.ones((128, 64), np.float32))
    assert caught.value.where.endswith("in kernel")


def test_a_result_that_is_partly_written_is_told() -> None:
    def kernel(x: Any) -> Any:
        return copied(x, 64)

    with pytest.warns(UnwrittenWarning, match="in kernel: the kernel returns result .*a part of it"):
        jit(kernel)(np.ones((128, 64), np.float32))


def test_a_tile_that_is_partly_written_is_told() -> None:
    def kernel(x: Any) -> Any:
        held = tile(128, 64, filled=False)
        nisa.dma_copy(held[:, 0:32], x[:, 0:32])
        nisa.dma_copy(x, held)
        return x

    with pytest.warns(UnwrittenWarning, match=r"kernel: a part of the sbuf tensor .* write all of it first"):
        jit(kernel)(np.ones((128, 64), np.float32))


def test_a_result_that_is_not_returned_is_refused() -> None:
    def kernel(x: Any) -> Any:
        copied(x, 128)

    with pytest.raises(NkiError, match=r"writes result .*returns nothing.*return the tensor"):
        jit(kernel)(np.ones((128, 64), np.float32))


def test_a_kernel_that_writes_its_argument_needs_no_return() -> None:
    def kernel(x: Any) -> Any:
        copied(x, 128)
        nisa.dma_copy(x, tile(128, 64))

    given = np.zeros((128, 64), np.float32)
    jit(kernel)(given)
    assert (given == 1).all()


@pytest.mark.parametrize("use", [
    lambda kept: nisa.tensor_copy(tile(64, 64), kept), lambda kept: nisa.memset(kept, 0),
], ids=["read", "written"])  # fmt: skip
def test_a_tile_of_an_earlier_call(use: Any) -> None:
    kept = []

    def kernel(x: Any) -> Any:
        kept.append(tile(64, 64))
        use(kept[0])
        return x

    jit(kernel)(np.ones((128, 64), np.float32))
    with pytest.raises(NkiError, match="belongs to another call of a kernel") as caught:
        jit(kernel)(np.ones((128, 64), np.float32))
    assert __file__ in caught.value.where


def test_an_axis_that_the_grid_lacks() -> None:
    def kernel(x: Any) -> Any:
        nl.program_id(1)
        return x

    with pytest.raises(NkiError, match="grid of 1 axes, which has no axis 1"):
        jit(kernel)[2](np.ones((128, 64), np.float32))
    jit(kernel)(np.ones((128, 64), np.float32))


@pytest.mark.parametrize("grid", [4, (2, 2)])
def test_more_cores_than_a_logical_one_has(grid: Any) -> None:
    with pytest.raises(NkiError, match="4 physical cores, but a logical NeuronCore has 1 or 2"):
        jit(lambda x: x)[grid](np.ones((8, 8), np.float32))


def test_two_cores_of_a_logical_one_that_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "1")
    with pytest.raises(NkiError, match="NEURON_LOGICAL_NC_CONFIG is 1; set it to 2"):
        jit(lambda x: x)[2](np.ones((8, 8), np.float32))


def test_the_chain_of_callers_is_named() -> None:
    def kernel(x: Any) -> Any:
        matmul(tile(64, 64), tile(64, 64), tile(64, 64))

    with pytest.raises(NkiError, match=r"in matmul \(called from .* in .*kernel\)"):
        jit(kernel)(np.ones((128, 64), np.float32))


def test_the_language_outside_kernels() -> None:
    with pytest.raises(TracingError, match="only inside a kernel"):
        nl.ndarray((8, 8), nl.float32)


def test_a_wrong_argument_is_pythons_error_at_the_line() -> None:
    def kernel(x: Any) -> Any:
        nisa.memset(tile(8, 8), 1.0, colour="red")  # type: ignore[call-arg]

    with pytest.raises(TypeError, match="colour"):
        jit(kernel)(np.ones((128, 64), np.float32))


def test_two_cores_without_a_barrier() -> None:
    def kernel(x: Any) -> Any:
        shared = nl.ndarray((2, 128, 64), nl.float32, nl.shared_hbm, name="halves")
        core = nl.program_id(0)
        held = tile(128, 64)
        nisa.dma_copy(shared[core], held)
        nisa.dma_copy(held, shared[1 - core])
        return shared

    with pytest.raises(NkiError, match=r"call nisa\.core_barrier between the two"):
        jit(kernel)[2](np.ones((128, 64), np.float32))


def both_write(x: Any) -> Any:
    shared = nl.ndarray((128, 64), nl.float32, nl.shared_hbm, name="same")
    nisa.dma_copy(shared, tile(128, 64))
    return shared


def test_two_cores_that_write_the_same_place_are_told() -> None:
    with pytest.warns(RaceWarning, match=r"in both_write: cores 0 and 1 both write same \(.*let one of them"):
        result = jit(both_write)[2](np.ones((128, 64), np.float32))
    assert (result == 1).all()


def test_a_pattern_past_the_end_that_nothing_uses_is_left_alone() -> None:
    def kernel(x: Any) -> Any:
        tile(64, 64).ap([[64, 64], [1, 65]])
        return x

    jit(kernel)(np.ones((128, 64), np.float32))


def test_more_than_sbuf_is_spilled_with_a_warning() -> None:
    def kernel(x: Any) -> Any:
        overfull(nl.sbuf, 8, 16384)

    with pytest.warns(SpillWarning, match=r"in tile \(called from .*overfull.*SBUF is full.*spills to HBM"):
        jit(kernel)(np.ones((128, 64), np.float32))


def test_a_tile_placed_over_one_that_is_still_used() -> None:
    def kernel(x: Any) -> Any:
        first, second = (nl.ndarray((128, 64), nl.float32, nl.sbuf, address=(0, at)) for at in (0, 128))
        nisa.dma_copy(first, x)
        nisa.memset(second, 2)
        nisa.dma_copy(x, first)
        return x

    with pytest.raises(NkiError, match=r"same address.*give them separate addresses") as caught:
        jit(kernel)(np.ones((128, 64), np.float32))
    assert __file__ in caught.value.where


def test_blocks_that_live_one_after_another_fit_in_psum() -> None:
    def kernel(x: Any) -> Any:
        result = language.ndarray((128, 128), dtype=x.dtype, buffer=language.shared_hbm)
        sums = language.ndarray((40, par_dim(128), 128), dtype=x.dtype, buffer=language.psum)
        tile, total = (language.ndarray((128, 128), dtype=x.dtype, buffer=language.sbuf) for _ in range(2))
        isa.dma_copy(tile, x)
        for i in language.affine_range(40):
            isa.nc_matmul(sums[i], tile, tile)
            isa.tensor_copy(total, sums[i])
        isa.dma_copy(result, total)
        return result

    identity = np.eye(128, dtype=np.float32)
    np.testing.assert_array_equal(Kernel(kernel, older_dialect=True)(identity), identity)


def twelve_sums(x: Any, products: int) -> tuple[Any, list[Any]]:
    """A result for as many tiles, and the sums in PSUM: each of so many products with ones."""
    held, ones = tile(128, 128, filled=False), tile(128, 512)
    nisa.dma_copy(held, x)
    sums = [psum(128, 512) for _ in range(12)]
    for each in sums:
        for _ in range(products):
            matmul(each, held, ones)
    return nl.ndarray((12, 128, 512), x.dtype, nl.shared_hbm), sums


def test_sums_that_are_copied_out_after_all_are_made_fit_in_psum() -> None:
    def kernel(x: Any) -> Any:
        result, sums = twelve_sums(x, products=2)
        for number, each in enumerate(sums):
            copied = tile(128, 512, filled=False)
            nisa.tensor_copy(copied, each)
            nisa.dma_copy(result[number], copied)
        return result

    assert (jit(kernel)(np.eye(128, dtype=np.float32)) == 2).all()


def test_sums_that_are_used_up_once_their_maximum_is_known_fit_in_psum() -> None:
    def kernel(x: Any) -> Any:
        result, sums = twelve_sums(x, products=1)
        largest = [tile(128, 1, filled=False) for _ in sums]
        for most, each in zip(largest, sums):
            nisa.tensor_reduce(most, nl.maximum, each, axis=1)
        for number, each in enumerate(sums):
            less = tile(128, 512, filled=False)
            nisa.tensor_scalar(less, each, nl.subtract, largest[number])
            nisa.dma_copy(result[number], less)
        return result

    assert (jit(kernel)(np.eye(128, dtype=np.float32)) == 0).all()


def test_values_alone_take_a_tile_beyond_a_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(x: Any) -> Any:
        result = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        sums = psum(128, 16, 2048)  # 128 KiB a partition, of 16
        nisa.memset(sums, 3)
        copied = tile(128, 64, filled=False)
        nisa.tensor_copy(copied, sums[:, 15, 0:64])
        nisa.dma_copy(result, copied)
        return result

    data = np.ones((128, 64), np.float32)
    with pytest.raises(NkiError, match=r"needs 131072 bytes of each psum .*NKI_CHECKS=fast"):
        jit(kernel)(data)
    monkeypatch.setenv("NKI_CHECKS", "fast")
    assert (jit(kernel)(data) == 3).all()
