"""Speed of NKI kernels here: tracing, values against NumPy, checks, a kernel of a million instructions."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import process_time, process_time_ns
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.figures import Figure, Peer, Target
from neuron_tools import hardware
from neuron_tools.arrays import Array
from neuron_tools.frozen import frozen
from neuron_tools.nki import execution, isa as nisa, language as nl, thoroughness
from neuron_tools.nki.kernel import Kernel
from neuron_tools.nki.lowering import lower
from neuron_tools.simulator import simulate

CORE = hardware.get("trn2")
PARTITIONS, ELEMENTS = 128, 512
REPEATS = 40
TRACING_TARGET = Target(">=", 200_000, "python")
VALUE_TARGET = Target("<=", 3.0)
CHECKS_TARGET = Target("<=", 25.0)
MILLION_TARGET = Target("<=", 60.0, "python")


def run(quick: bool = False) -> list[Figure]:
    """All figures; `quick` measures the large kernel at a quarter of its size."""
    return [
        *tracing_figures(),
        *value_figures(),
        *check_figures(),
        million_figure(250_000 if quick else 1_000_000),
    ]


# Tracing


def elementwise_kernel(a: nl.NkiTensor, steps: int) -> nl.NkiTensor:
    """Three instructions on four parts of a tile, `steps` times: views made anew for every operand."""
    part = nl.ndarray((PARTITIONS, ELEMENTS), dtype=a.dtype, buffer=nl.sbuf)
    total = nl.ndarray((PARTITIONS, ELEMENTS), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=part, src=a)
    nisa.memset(total, 0.0)
    for _ in range(steps):
        for j in nl.affine_range(4):
            place = total[:, j * 128 : (j + 1) * 128]
            nisa.tensor_tensor(dst=place, data1=part[:, j * 128 : (j + 1) * 128], data2=place, op=nl.add)
            nisa.activation(dst=place, op=nl.tanh, data=total[:, j * 128 : (j + 1) * 128])
            nisa.tensor_scalar(dst=place, data=place, op0=nl.multiply, operand0=0.5)
    return a


def matmul_kernel(a: nl.NkiTensor, b: nl.NkiTensor) -> nl.NkiTensor:
    """A tiled matmul that loads both operands in the innermost loop: half its calls declare or move tiles."""
    depth, rows = a.shape
    columns = b.shape[1]
    result = nl.ndarray((rows, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(rows // 128):
        for n in nl.affine_range(columns // 512):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(depth // 128):
                left = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
                right = nl.ndarray((128, 512), dtype=b.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=left, src=a[k * 128 : (k + 1) * 128, m * 128 : (m + 1) * 128])
                nisa.dma_copy(dst=right, src=b[k * 128 : (k + 1) * 128, n * 512 : (n + 1) * 512])
                nisa.nc_matmul(dst=total, stationary=left, moving=right)
            staged = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=staged, src=total)
            nisa.dma_copy(dst=result[m * 128 : (m + 1) * 128, n * 512 : (n + 1) * 512], src=staged)
    return result


def tracing_figures() -> list[Figure]:
    """Instructions traced a second, without values; CPU time, best of three."""
    tile = np.zeros((PARTITIONS, ELEMENTS), np.float32)
    matrix = np.zeros((4096, 4096), ml_dtypes.bfloat16)
    figures = []
    for name, kernel, arguments in (
        ("elementwise", elementwise_kernel, (tile, 5000)),
        ("matmul", matmul_kernel, (matrix, matrix)),
    ):
        rate, calls, rows = tracing_rate(kernel, arguments)
        note = f"{calls:,} calls, {rows:,} instructions of the engines"
        figures.append(Figure(f"tracing, {name}", rate, "instructions/s", TRACING_TARGET, note=note))
    return figures


def tracing_rate(kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[float, int, int]:
    """(instructions of the Program a second of tracing, calls, instructions)."""
    best = float("inf")
    for _ in range(3):
        begin = process_time()
        (trace,) = Kernel(kernel, core=CORE).run(*arguments, values=False).traces
        best = min(best, process_time() - begin)
    rows = len(lower(trace, "benchmark").program.instructions)
    return rows / best, trace.row_count, rows


# Values


@frozen
class Comparison:
    """One instruction and the same arithmetic in plain NumPy, on tiles of 128 x 512."""

    name: str
    arrays: tuple[Array, ...]
    dtype: Any
    instruction: Callable[..., None]
    plain: Callable[..., Any]
    shape: tuple[int, int] = (PARTITIONS, ELEMENTS)
    buffer: Any = nl.sbuf


def comparisons() -> list[Comparison]:
    """The instructions that kernels use most."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((PARTITIONS, ELEMENTS)).astype(np.float32) for _ in range(2))
    weights = random.standard_normal((PARTITIONS, 128)).astype(np.float32)
    narrow = a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)
    single, half = np.float32, ml_dtypes.bfloat16
    return [
        Comparison(
            "tensor_tensor add, fp32", (a, b), single,
            lambda r, x, y: nisa.tensor_tensor(r, x, y, nl.add), lambda r, x, y: np.add(x, y, out=r),
        ),
        Comparison(
            "tensor_tensor multiply, bf16", narrow, half,
            lambda r, x, y: nisa.tensor_tensor(r, x, y, nl.multiply),
            lambda r, x, y: np.copyto(r, (x.astype(single) * y.astype(single)).astype(half)),
        ),
        Comparison(
            "tensor_scalar multiply add, fp32", (a,), single,
            lambda r, x: nisa.tensor_scalar(r, x, nl.multiply, 2.0, op1=nl.add, operand1=1.0),
            lambda r, x: np.add(x * single(2.0), single(1.0), out=r),
        ),
        Comparison(
            "activation exp with scale, fp32", (a,), single,
            lambda r, x: nisa.activation(r, nl.exp, x, scale=0.5),
            lambda r, x: np.exp(x * single(0.5), out=r),
        ),
        Comparison(
            "tensor_reduce maximum, fp32", (a,), single,
            lambda r, x: nisa.tensor_reduce(r, nl.maximum, x, axis=1),
            lambda r, x: np.copyto(r, np.maximum.reduce(x, axis=1, keepdims=True)), (PARTITIONS, 1),
        ),
        Comparison(
            "tensor_copy fp32 to bf16", (a,), half,
            lambda r, x: nisa.tensor_copy(r, x), lambda r, x: np.copyto(r, x.astype(half)),
        ),
        Comparison(
            "nc_matmul 128 x 128 x 512, fp32", (weights, b), single,
            lambda r, x, y: nisa.nc_matmul(r, x, y, accumulate=False),
            lambda r, x, y: np.matmul(x.T, y, out=r), (PARTITIONS, ELEMENTS), nl.psum,
        ),
    ]  # fmt: skip


def value_figures() -> list[Figure]:
    """Time of each instruction with its value by that of plain NumPy; CPU time, best of five each."""
    return [_value_figure(case) for case in comparisons()]


def _value_figure(case: Comparison) -> Figure:
    spent: list[int] = []

    def kernel(*tensors: nl.NkiTensor) -> nl.NkiTensor:
        tiles = [nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf) for x in tensors]
        for tile, tensor in zip(tiles, tensors):
            nisa.dma_copy(tile, tensor)
        result = nl.ndarray(case.shape, dtype=case.dtype, buffer=case.buffer)
        for _ in range(5):
            begin = process_time_ns()
            for _ in range(REPEATS):
                case.instruction(result, *tiles)
            spent.append(process_time_ns() - begin)
            begin = process_time_ns()
            for _ in range(REPEATS):
                case.plain(plain_result, *case.arrays)
            plain.append(process_time_ns() - begin)
        return tensors[0]

    plain: list[int] = []
    plain_result = np.zeros(case.shape, case.dtype)
    Kernel(kernel, core=CORE).run(*case.arrays)
    ours, theirs = min(spent) / REPEATS / 1000, min(plain) / REPEATS / 1000
    return Figure(
        f"value of {case.name}", ours / theirs, "x NumPy's time", VALUE_TARGET, Peer("NumPy, same tile", 1.0),
        f"{ours:.1f} us, NumPy {theirs:.1f} us",
    )  # fmt: skip


# Checks


def layered_kernel(x: nl.NkiTensor) -> nl.NkiTensor:
    """Small tiles that the kernel places itself, by functions that call one another, a half on each core."""
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = x.shape[0] // nl.num_programs(0) // PARTITIONS
    for step in range(rows):
        row = (nl.program_id(0) * rows + step) * PARTITIONS
        for column in range(0, x.shape[1], 128):
            _normalize(result[row : row + PARTITIONS, column : column + 128], x[row : row + PARTITIONS,
                       column : column + 128], step % 4)  # fmt: skip
    return result


def _normalize(target: nl.NkiTensor, source: nl.NkiTensor, place: int) -> None:
    tile = _placed(source.shape, place, 0)
    nisa.dma_copy(dst=tile, src=source)
    _scale_rows(tile, _inverse_sums(tile, place))
    nisa.dma_copy(dst=target, src=tile)


def _inverse_sums(tile: nl.NkiTensor, place: int) -> nl.NkiTensor:
    squares, total = _placed(tile.shape, place, 512), _placed((PARTITIONS, 1), place, 1024)
    nisa.tensor_tensor(dst=squares, data1=tile, data2=tile, op=nl.multiply)
    nisa.tensor_reduce(dst=total, op=nl.add, data=squares, axis=1)
    nisa.activation(dst=total, op=nl.rsqrt, data=total, scale=1.0 / tile.shape[1])
    return total


def _scale_rows(tile: nl.NkiTensor, factor: nl.NkiTensor) -> None:
    for start in range(0, tile.shape[1], 64):
        part = tile[:, start : start + 64]
        nisa.tensor_scalar(dst=part, data=part, op0=nl.multiply, operand0=factor)


def _placed(shape: tuple[int, ...], place: int, byte: int) -> nl.NkiTensor:
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf, address=(0, place * 2048 + byte))


def check_figures() -> list[Figure]:
    """What the checks of plain calls take, in turns with and without; CPU time, least of 20."""
    random = np.random.default_rng(0)
    rows = random.standard_normal((4096, 1024)).astype(np.float32)
    matrix = random.standard_normal((1024, 1024)).astype(ml_dtypes.bfloat16)
    return [
        _check_figure("layers of small functions, two cores", Kernel(layered_kernel, core=CORE)[2], (rows,)),
        _check_figure("tiled matmul", Kernel(matmul_kernel, core=CORE), (matrix, matrix)),
    ]


def _check_figure(name: str, kernel: Kernel, arguments: tuple[Array, ...]) -> Figure:
    spent: dict[str, list[float]] = {"": [], "fast": []}
    before = os.environ.get(thoroughness.CHECKS)
    try:
        for _ in range(20):
            for checks, times in spent.items():
                os.environ[thoroughness.CHECKS] = checks
                begin = process_time()
                execution.compute(kernel, arguments, {})
                times.append(process_time() - begin)
    finally:
        os.environ.pop(thoroughness.CHECKS) if before is None else os.environ.update(
            {thoroughness.CHECKS: before}
        )
    checked, fast = min(spent[""]), min(spent["fast"])
    note = f"{checked:.2f} s a call with all checks, {fast:.2f} s with {thoroughness.CHECKS}=fast"
    return Figure(f"checks, {name}", 100 * (checked / fast - 1), "%", CHECKS_TARGET, note=note)


# A large kernel


def million_figure(instructions: int) -> Figure:
    """Seconds to trace, compute, lower and simulate a kernel of many instructions on 128 x 128 parts."""
    steps = instructions // 12
    tile = np.zeros((PARTITIONS, ELEMENTS), np.float32)
    begin = process_time()
    (trace,) = Kernel(elementwise_kernel, core=CORE).run(tile, steps).traces
    traced = process_time() - begin
    program = lower(trace, "benchmark").program
    lowered = process_time() - begin - traced
    simulate(program, CORE)
    total = process_time() - begin
    scale = 1_000_000 / len(program.instructions)
    return Figure(
        "a million instructions: trace, values, Program, times", total * scale, "s", MILLION_TARGET,
        note=f"{len(program.instructions):,} instructions: {traced:.1f} s trace and values, {lowered:.1f} s "
        f"Program, {total - traced - lowered:.1f} s times",
    )  # fmt: skip
