"""Instructions of the Tensor engine: matmuls and transposes."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.backend.kinds import Kind, Step
from neuron_tools.nki import dtypes
from neuron_tools.nki.errors import UninitializedReadError
from neuron_tools.nki.isa.enums import as_member, engine as engines, matmul_perf_mode
from neuron_tools.nki.isa.issue import (
    compute_step,
    refuse,
    require_memory,
)
from neuron_tools.nki.isa.prologue import instruction
from neuron_tools.nki.isa.table import PSUM, SBUF, Call, Derived, Instruction, Operand
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.microscaling import dequantized
from neuron_tools.nki.placement import PSUM_BANK_BYTES
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import active, where
from neuron_tools.nki.values import exact, single, write
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode

_SINGLE = (DType.F32, DType.TF32)
_VECTOR_TRANSPOSE = 32


def _was_written(dst: NkiTensor) -> bool:
    """Whether a matmul adds to its result, where the kernel does not say: if something was written there."""
    storage = dst.storage
    return bool(storage.complete or storage.holds(*dst.box()) > 0)  # type: ignore[union-attr]  # results have memory


def _crosses_banks(dst: NkiTensor) -> bool:
    """Whether a result begins in one PSUM bank and ends in another; a tile of more than a bank starts one."""
    storage = dst.storage
    assert storage is not None  # results have memory
    in_one = storage.pitch_bytes <= PSUM_BANK_BYTES and storage.address is None
    if in_one or storage.blocks > 1 or storage.region is not MemoryRegion.psum:
        return False
    _, _, low, high = dst.box()
    start = storage.address or 0
    return (start + low) // PSUM_BANK_BYTES != (start + high - 1) // PSUM_BANK_BYTES


def _check_bank(call: Call) -> None:
    """Refuse a result of the Tensor engine in two banks, which NeuronCores before v4 cannot write."""
    bank = call.trace.core.psum_bank_bytes
    if call.given["crosses_banks"] and call.trace.core.generation < 4:
        raise refuse(
            f"{call.record.name} writes one PSUM bank of {bank} bytes per partition, but dst of shape "
            f"{call.form('dst').shape} lies in two; let it begin at a bank, or split it there"
        )


_CROSSES_BANKS = Derived("crosses_banks", ("dst",), _crosses_banks)


def _adds(dst: NkiTensor, accumulate: bool | None) -> bool:
    """Whether a matmul adds to its result: as the kernel says, else if something was written there.

    Raises:
        UninitializedReadError: It is to add to what nothing has written.
    """
    written = _was_written(dst)
    if accumulate and not written and not active().is_guessing:
        raise UninitializedReadError(
            f"nc_matmul is to accumulate into a view of shape {dst.shape}, but nothing has been written "
            "there; begin with accumulate=False, or leave accumulate out",
            where(),
        )
    return written if accumulate is None else bool(accumulate)


_ACCUMULATE = Derived("accumulate", ("dst", "accumulate"), _adds)


def _matmul(call: Call) -> Kind:
    """A load of the stationary operand and a multiplication; twice each for fp32, half by half."""
    dst, stationary, moving = call.form("dst"), call.form("stationary"), call.form("moving")
    is_transpose, given = call.given["is_transpose"], call.given
    double = given["perf_mode"] is not matmul_perf_mode.none
    if given["perf_mode"] is matmul_perf_mode.double_row:
        _check_double_rows(stationary, moving)
    columns, elements = stationary.elements, moving.elements
    if double:
        columns, elements = columns // 2, elements // 2
    _check_matmul(call, columns, elements)
    if not is_transpose:
        _check_types(call, dst, stationary, moving)
    _check_tiling(call, columns)
    flags = Flag.ACCUMULATE if given["accumulate"] else Flag.NONE
    if is_transpose:
        flags |= Flag.TRANSPOSE
    exact_halves = given["is_stationary_onezero"] or given["is_moving_onezero"] or is_transpose
    halves = 2 if moving.dtype.chip in _SINGLE and not exact_halves else 1
    if halves == 2:
        flags |= Flag.FP32_HALF
    steps = []
    for half in range(halves):
        steps += _matmul_steps(dst, stationary, moving, columns, elements, flags, half == halves - 1)
        flags |= Flag.ACCUMULATE
    flops = 0 if is_transpose else 2 * stationary.partitions * columns * elements * (2 if double else 1)
    name = "nc_transpose" if is_transpose else "nc_matmul"
    return Kind(name, tuple(steps), flops=flops, whole=dst.dense)


def _check_double_rows(stationary: ViewForm, moving: ViewForm) -> None:
    """Refuse operands of other types than fp8 in the mode that reads two rows at a time."""
    for name, form in (("stationary", stationary), ("moving", moving)):
        if form.dtype.chip is not DType.FP8:
            raise refuse(
                f"nc_matmul with perf_mode double_row multiplies fp8, but {name} is {form.dtype}; convert "
                "it, or leave perf_mode out"
            )


def _matmul_steps(
    dst: ViewForm, stationary: ViewForm, moving: ViewForm, columns: int, elements: int, flags: Flag,
    last: bool,
) -> list[Step]:  # fmt: skip
    load = Step(
        Engine.TENSOR, Opcode.LDWEIGHTS, stationary.dtype.chip, stationary.dtype.chip, Memory.SBUF,
        Memory.NONE, flags=flags & ~Flag.ACCUMULATE, partitions=stationary.partitions, columns=columns,
        elements=columns, waits=(2,), source=2,
    )  # fmt: skip
    multiply = Step(
        Engine.TENSOR, Opcode.MATMUL, moving.dtype.chip, dst.dtype.chip, Memory.SBUF, Memory.PSUM,
        flags=flags, partitions=moving.partitions, columns=columns, elements=elements, waits=(0, 3),
        source=3, writes=(0,) if last else (),
    )  # fmt: skip
    return [load, multiply]


def _check_matmul(call: Call, columns: int, elements: int) -> None:
    """Refuse what the array cannot hold: `columns` of the stationary and `elements` of the moving operand."""
    core = call.trace.core
    dst, stationary, moving = call.form("dst"), call.form("stationary"), call.form("moving")
    if stationary.partitions != moving.partitions:
        raise refuse(
            f"nc_matmul contracts over the partitions, but stationary has {stationary.partitions} "
            f"(shape {stationary.shape}) and moving {moving.partitions} (shape {moving.shape})"
        )
    if columns > core.tensor_columns:
        raise refuse(
            f"the stationary operand of nc_matmul may have {core.tensor_columns} free elements, shape "
            f"{stationary.shape} has {columns}; tile it"
        )
    limit = core.matmul_moving_columns * (8 if core.generation >= 4 else 1)
    if elements > limit:
        raise refuse(
            f"the moving operand of nc_matmul may have {limit} free elements, shape {moving.shape} has "
            f"{elements}; tile it"
        )
    if (dst.partitions, dst.elements) != (columns, elements):
        raise refuse(
            f"nc_matmul of stationary {stationary.shape} and moving {moving.shape} gives ({columns}, "
            f"{elements}), but dst has shape {dst.shape}"
        )
    if dst.elements * dst.dtype.itemsize > core.psum_bank_bytes * (8 if core.generation >= 4 else 1):
        raise refuse(
            f"nc_matmul writes one PSUM bank of {core.psum_bank_bytes} bytes per partition, but dst of shape "
            f"{dst.shape} and type {dst.dtype} has {dst.elements * dst.dtype.itemsize}"
        )
    single_precision = [form.dtype.chip in _SINGLE for form in (stationary, moving)]
    if single_precision[0] != single_precision[1]:
        raise refuse(
            f"nc_matmul takes fp32 only with fp32: stationary is {stationary.dtype}, moving {moving.dtype}"
        )
    _check_bank(call)


def _check_tiling(call: Call, columns: int) -> None:
    """Refuse parts into which the array cannot be divided ("Tiling mode" of nki.isa.nc_matmul)."""
    size, position = tuple(call.given["tile_size"] or ()), tuple(call.given["tile_position"] or ())
    if not size and not position:
        return
    if len(size) != 2 or len(position) != 2:
        raise refuse(
            f"nc_matmul takes tile_size (rows, columns) and tile_position (row, column) together, got {size} "
            f"and {position}; give both, or neither"
        )
    extents = (32, 64, 128) if call.trace.core.generation >= 3 else (64, 128)
    if any(extent not in extents or at % extent or not 0 <= at < 128 for extent, at in zip(size, position)):
        raise refuse(
            f"nc_matmul takes parts of the array of {', '.join(map(str, extents))} rows and columns that "
            f"begin at multiples of their size, got tile_size {size} at tile_position {position}"
        )
    rows = call.form("stationary").partitions
    if rows > size[0] or columns > size[1]:
        raise refuse(
            f"the stationary operand of nc_matmul has {rows} rows and {columns} columns, but tile_size is "
            f"{size}; choose a larger part of the array"
        )


def _check_types(call: Call, dst: ViewForm, stationary: ViewForm, moving: ViewForm) -> None:
    """Refuse what the Tensor engine cannot multiply or sum into ("Data types" of nki.isa.nc_matmul)."""
    if not dst.dtype.is_float:
        raise refuse(
            f"nc_matmul sums in fp32 in PSUM, but dst is {dst.dtype}; give it nl.float32 "
            "(nisa.tensor_copy turns the sums into integers)"
        )
    if not call.trace.older_dialect and call.trace.core.generation < 4 and dst.dtype is not dtypes.float32:
        raise refuse(
            f"nc_matmul writes fp32 sums as they are before NeuronCore-v4, but dst is {dst.dtype}; declare "
            "it nl.float32, and convert it with nisa.tensor_copy"
        )
    for operand, form in (("stationary", stationary), ("moving", moving)):
        if not form.dtype.is_float:
            raise refuse(
                f"nc_matmul multiplies floats (fp8, bf16, fp16, tf32, fp32), but {operand} is {form.dtype}; "
                "convert it first (nisa.tensor_copy into a tile of another type)"
            )


@instruction(Instruction(
    "nc_matmul", Opcode.MATMUL, (Engine.TENSOR,),
    (Operand("dst", PSUM, written=True), Operand("stationary", SBUF), Operand("moving", SBUF)),
    key=("is_transpose", "is_stationary_onezero", "is_moving_onezero", "accumulate", "perf_mode",
         "tile_position", "tile_size", "crosses_banks"),
    derived=(_ACCUMULATE, _CROSSES_BANKS), build=_matmul,
))  # fmt: skip
def nc_matmul(
    dst: NkiTensor,
    stationary: NkiTensor,
    moving: NkiTensor,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    accumulate: bool | None = None,
    tile_position: tuple[int, ...] = (),
    tile_size: tuple[int, ...] = (),
    perf_mode: matmul_perf_mode = matmul_perf_mode.none,
    name: str | None = None,
) -> None:
    """dst = stationary.T @ moving on the Tensor engine, accumulated in fp32 in PSUM.

    Args:
        dst: (M, N) in PSUM, fp32 (a transpose: the operand's type).
        stationary: (K, M) in SBUF, K <= 128 partitions, M <= 128.
        moving: (K, N) in SBUF, N <= 512.
        is_stationary_onezero: The stationary operand holds only 0 and 1 (fp32 in one pass).
        is_moving_onezero: The moving operand does.
        is_transpose: Moves data only to turn it, bit for bit.
        accumulate: Add to `dst`; None: overwrite what nothing has written yet, else add.
        tile_position: (row, column) of the part of the array that is used.
        tile_size: (rows, columns) of that part.
        perf_mode: `double_row`: operands (K, 2, M) and (K, 2, N) of fp8, contraction over K and 2.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    _multiply(dst, stationary, moving, is_transpose, bool(accumulate), perf_mode)


def _multiply(
    dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, is_transpose: bool, add: bool,
    perf_mode: matmul_perf_mode,
) -> None:  # fmt: skip
    if is_transpose and not add and moving.shape[0] == moving.size // moving.shape[0]:
        write(dst, _flat(exact(stationary)).T if _is_identity(moving) else
              _flat(single(stationary)).T @ _flat(single(moving)))  # fmt: skip
        return
    left, right = single(stationary), single(moving)
    if left.ndim == 3 and as_member(matmul_perf_mode, perf_mode) is not matmul_perf_mode.none:
        left = np.ascontiguousarray(left).reshape(-1, left.shape[2])
        right = np.ascontiguousarray(right).reshape(-1, right.shape[2])
    left, right = _flat(left), _flat(right)
    shape = (left.shape[1], right.shape[1])
    if dst.dtype is dtypes.float32 and dst.shape == shape and dst.gather is None:
        if add:
            dst.array.__iadd__(left.T @ right)
        else:
            np.matmul(left.T, right, out=dst.array)
        return
    product = left.T @ right
    if add:
        product = product + single(dst).reshape(shape)
    write(dst, product)


def _is_identity(moving: NkiTensor) -> bool:
    return bool(np.array_equal(single(moving), np.eye(moving.shape[0], dtype=np.float32)))


def _flat(array: Array) -> Array:
    return array if array.ndim == 2 else array.reshape(array.shape[0], -1)


def _turned_by(call: Call) -> Engine:
    """The engine that the kernel names; else the one that reaches both tiles."""
    engine = call.given["engine"]
    reached = call.form("dst").memory is Memory.SBUF or call.form("data").memory is Memory.PSUM
    on_vector = engine is engines.vector or (engine is engines.unknown and reached)
    return Engine.VECTOR if on_vector else Engine.TENSOR


def _transpose(call: Call) -> Kind:
    dst, data, core = call.form("dst"), call.form("data"), call.trace.core
    if (dst.partitions, dst.elements) != (data.elements, data.partitions):
        raise refuse(
            f"nc_transpose of shape {data.shape} gives ({data.elements}, {data.partitions}), but dst has "
            f"shape {dst.shape}"
        )
    if dst.dtype is not data.dtype and not call.trace.older_dialect:
        raise refuse(
            f"nc_transpose moves elements as they are, but data is {data.dtype} and dst {dst.dtype}; declare "
            f"dst as {data.dtype}, and convert it with nisa.tensor_copy"
        )
    if call.engine is Engine.VECTOR:
        small = data.partitions <= _VECTOR_TRANSPOSE and data.elements <= _VECTOR_TRANSPOSE
        if not small and call.given["engine"] is engines.vector:
            raise refuse(
                f"nc_transpose on the Vector engine turns at most {_VECTOR_TRANSPOSE} x {_VECTOR_TRANSPOSE}, "
                f"got shape {data.shape}; use the Tensor engine"
            )
        step = compute_step(Engine.VECTOR, Opcode.STREAM_SHUFFLE, dst, data, flags=Flag.TRANSPOSE)
        return Kind("nc_transpose", (step,), whole=dst.dense)
    require_memory("nc_transpose on the Tensor engine", Memory.SBUF, data=data)
    require_memory("nc_transpose on the Tensor engine", Memory.PSUM, dst=dst)
    if data.elements > core.tensor_columns:
        raise refuse(
            f"nc_transpose turns at most {core.tensor_columns} free elements, got shape {data.shape}"
        )
    _check_bank(call)
    chip = data.dtype.chip
    load = Step(Engine.TENSOR, Opcode.LDWEIGHTS, chip, chip, Memory.SBUF, Memory.NONE, flags=Flag.TRANSPOSE,
                partitions=data.partitions, columns=data.elements, elements=data.elements, waits=(2,),
                source=2)  # fmt: skip
    turn = Step(Engine.TENSOR, Opcode.TRANSPOSE, chip, dst.dtype.chip, Memory.SBUF, Memory.PSUM,
                flags=Flag.TRANSPOSE, partitions=data.partitions, columns=data.elements,
                elements=data.partitions, waits=(0,), writes=(0,))  # fmt: skip
    return Kind("nc_transpose", (load, turn), whole=dst.dense)


@instruction(Instruction(
    "nc_transpose", Opcode.TRANSPOSE, (Engine.TENSOR, Engine.VECTOR),
    (Operand("dst", written=True), Operand("data")), key=("engine", "crosses_banks"),
    derived=(_CROSSES_BANKS,), select=_turned_by, build=_transpose,
))  # fmt: skip
def nc_transpose(
    dst: NkiTensor,
    data: NkiTensor,
    engine: engines = engines.unknown,
    name: str | None = None,
) -> None:
    """dst = data.T between partitions and free dimensions.

    Args:
        dst: (F, P), in PSUM for the Tensor engine; same type as `data`.
        data: (P, F): at most 128 x 128 on the Tensor engine, 32 x 32 on the Vector engine.
        engine: `engine.tensor` or `engine.vector`; unknown: by memory and size.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    write(dst, _flat(exact(data)).T)


def _matmul_mx(call: Call) -> Kind:
    dst, stationary, moving = call.form("dst"), call.form("stationary"), call.form("moving")
    if stationary.dtype.packed != 4 or moving.dtype.packed != 4:
        raise refuse(f"nc_matmul_mx takes operands packed by four, got {stationary.dtype} and {moving.dtype}")
    if stationary.partitions % 32:
        raise refuse(f"nc_matmul_mx needs a multiple of 32 partitions, got {stationary.partitions}")
    _check_matmul(call, stationary.elements, moving.elements)
    flags = Flag.ACCUMULATE if call.given["accumulate"] else Flag.NONE
    steps = _matmul_steps(dst, stationary, moving, stationary.elements, moving.elements, flags, True)
    flops = 2 * 4 * stationary.partitions * stationary.elements * moving.elements
    return Kind("nc_matmul_mx", tuple(steps), flops=flops)


@instruction(Instruction(
    "nc_matmul_mx", Opcode.MATMUL, (Engine.TENSOR,),
    (Operand("dst", PSUM, written=True), Operand("stationary", SBUF), Operand("moving", SBUF),
     Operand("stationary_scale", streamed=False), Operand("moving_scale", streamed=False)),
    key=("accumulate", "crosses_banks"), derived=(_ACCUMULATE, _CROSSES_BANKS), since=4, build=_matmul_mx,
))  # fmt: skip
def nc_matmul_mx(
    dst: NkiTensor,
    stationary: NkiTensor,
    moving: NkiTensor,
    stationary_scale: NkiTensor,
    moving_scale: NkiTensor,
    tile_position: Any = None,
    tile_size: Any = None,
    accumulate: bool | None = None,
    name: str | None = None,
) -> None:
    """dst = stationary.T @ moving of MX operands, scaled per group of 8 partitions x 4 packed values.

    Args:
        dst: (M, N) in PSUM, fp32 or bf16.
        stationary: (K, M) packed by four, K a multiple of 32, M even and <= 128.
        moving: (K, N) packed by four.
        stationary_scale: uint8 exponents (bias 127) of the stationary groups.
        moving_scale: The same of the moving operand.
        tile_position, tile_size: Part of the array that is used.
        accumulate: As for `nc_matmul`.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule is broken, or the core is older than NeuronCore-v4.
    """
    left = dequantized(stationary, stationary_scale)
    right = dequantized(moving, moving_scale)
    product = left.T @ right
    write(dst, product + single(dst).reshape(product.shape) if accumulate else product)
