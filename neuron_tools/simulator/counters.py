"""Counters of instructions and DMAs: bytes per memory, FLOPs, elements, as the profile schema means them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode, Program, Purpose

_TWO_INPUTS = (Opcode.TENSOR_TENSOR, Opcode.SCALAR_TENSOR_TENSOR, Opcode.TENSOR_TENSOR_SCAN)
_MATMULS = (Opcode.MATMUL, Opcode.TRANSPOSE)
_WRITES_ONLY = (Opcode.MEMSET, Opcode.IOTA, Opcode.RANDOM)
_MOVES_NOTHING = (Opcode.NOP, Opcode.DMA_TRIGGER, Opcode.EVENT_SEMAPHORE, Opcode.ACT_TABLE_LOAD)
_BYTES = np.array([dtype.byte_count for dtype in DType], np.int64)


@frozen
class InstructionCounters:
    """Counters of the columns of the `Instruction` table; int64 arrays of shape (instructions,).

    The memory counters of a DMA_TRIGGER are those of the DMA it starts; summing this and DmaCounters would
    count them twice. FLOPs are those of the Tensor engine.
    """

    sbuf_read_bytes: Ints
    sbuf_write_bytes: Ints
    psum_read_bytes: Ints
    psum_write_bytes: Ints
    psum_read_sbuf_write_bytes: Ints
    hbm_read_bytes: Ints
    hbm_write_bytes: Ints
    spill_save_bytes: Ints
    spill_reload_bytes: Ints
    input_queue_bytes: Ints
    output_queue_bytes: Ints
    weight_queue_bytes: Ints
    tensor_elements: Ints
    raw_flops: Ints
    adjusted_flops: Ints
    tensor_elements_transpose: Ints
    flops_transpose: Ints
    adjusted_flops_transpose: Ints


@frozen
class DmaCounters:
    """Bytes of each DMA by memory and purpose; int64 arrays of shape (dmas,)."""

    hbm_read_bytes: Ints
    hbm_write_bytes: Ints
    sbuf_read_bytes: Ints
    sbuf_write_bytes: Ints
    spill_save_bytes: Ints
    spill_reload_bytes: Ints
    input_queue_bytes: Ints
    output_queue_bytes: Ints
    weight_queue_bytes: Ints


def dma_counters(program: Program) -> DmaCounters:
    """Counters of the DMAs. Host transfers move no HBM bytes (schema: host transfers excluded)."""
    dmas = program.dmas
    size = dmas["bytes"].astype(np.int64)
    source, destination, purpose = dmas["source_memory"], dmas["destination_memory"], dmas["purpose"]
    host = (source == Memory.HOST) | (destination == Memory.HOST)

    def where(condition: npt.NDArray[np.bool_]) -> Ints:
        return np.where(condition, size, 0)

    return DmaCounters(
        hbm_read_bytes=where((source == Memory.HBM) & ~host),
        hbm_write_bytes=where((destination == Memory.HBM) & ~host),
        sbuf_read_bytes=where(source == Memory.SBUF),
        sbuf_write_bytes=where(destination == Memory.SBUF),
        spill_save_bytes=where(purpose == Purpose.SPILL_SAVE),
        spill_reload_bytes=where(purpose == Purpose.SPILL_RELOAD),
        input_queue_bytes=where(purpose == Purpose.INPUT),
        output_queue_bytes=where(purpose == Purpose.OUTPUT),
        weight_queue_bytes=where(purpose == Purpose.WEIGHT),
    )


def instruction_counters(program: Program, core: NeuronCore) -> InstructionCounters:
    """Counters of the instructions.

    `raw_flops` = 2 x rows x columns x elements of each matmul (half of it for one of the two instructions
    of an fp32 matmul, so that it compares with the model's FLOPs); `adjusted_flops` scales it to the bf16
    rate of the core, which makes adjusted FLOPs / peak the time the Tensor engine must take.
    """
    instructions = program.instructions
    read, second, written = _operand_bytes(program)
    source, destination = instructions["source_memory"], instructions["destination_memory"]
    moved = dma_counters(program)
    dma = instructions["dma"]
    second_memory = _second_memory(instructions)
    psum_read = _sum_where(source == Memory.PSUM, read, second_memory == Memory.PSUM, second)
    psum_to_sbuf = (psum_read > 0) & (destination == Memory.SBUF)
    raw, elements, turned = _flops(instructions)
    adjusted = np.rint(raw / _speed(instructions, turned, core)).astype(np.int64)
    return InstructionCounters(
        sbuf_read_bytes=_sum_where(source == Memory.SBUF, read, second_memory == Memory.SBUF, second)
        + _of_dma(moved.sbuf_read_bytes, dma),
        sbuf_write_bytes=np.where(destination == Memory.SBUF, written, 0)
        + _of_dma(moved.sbuf_write_bytes, dma),
        psum_read_bytes=psum_read,
        psum_write_bytes=np.where(destination == Memory.PSUM, written, 0),
        psum_read_sbuf_write_bytes=np.where(psum_to_sbuf, written, 0),
        hbm_read_bytes=_of_dma(moved.hbm_read_bytes, dma),
        hbm_write_bytes=_of_dma(moved.hbm_write_bytes, dma),
        spill_save_bytes=_of_dma(moved.spill_save_bytes, dma),
        spill_reload_bytes=_of_dma(moved.spill_reload_bytes, dma),
        input_queue_bytes=_of_dma(moved.input_queue_bytes, dma),
        output_queue_bytes=_of_dma(moved.output_queue_bytes, dma),
        weight_queue_bytes=_of_dma(moved.weight_queue_bytes, dma),
        tensor_elements=elements,
        raw_flops=raw,
        adjusted_flops=adjusted,
        tensor_elements_transpose=np.where(turned, elements, 0),
        flops_transpose=np.where(turned, raw, 0),
        adjusted_flops_transpose=np.where(turned, adjusted, 0),
    )


def product_flops(program: Program) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """`raw_flops` of each instruction, and whether it is a transpose, without the other counters."""
    raw, _, turned = _flops(program.instructions)
    return raw, turned


def _operand_bytes(program: Program) -> tuple[Ints, Ints, Ints]:
    """Bytes of (first operand, second operand, result) of each instruction."""
    instructions = program.instructions
    opcode = instructions["opcode"]
    partitions = instructions["partitions"].astype(np.int64)
    columns = instructions["columns"].astype(np.int64)
    elements = np.where(opcode == Opcode.LDWEIGHTS, columns, instructions["elements"].astype(np.int64))
    elements = np.where(np.isin(opcode, _MOVES_NOTHING), 0, elements)
    matmul = np.isin(opcode, _MATMULS) & (instructions["engine"] == Engine.TENSOR)
    read = partitions * elements * _BYTES[instructions["input_dtype"]]
    second = np.where(np.isin(opcode, _TWO_INPUTS), read, 0)
    written = np.where(matmul, columns, partitions) * elements * _BYTES[instructions["output_dtype"]]
    written = np.where(opcode == Opcode.LDWEIGHTS, 0, written)
    return np.where(np.isin(opcode, _WRITES_ONLY), 0, read), second, _within_tile(program, written)


def _within_tile(program: Program, written: Ints) -> Ints:
    """A reduction writes less than it reads: no more than its destination tile holds."""
    destination = program.instructions["destination"]
    named = destination >= 0
    tiles = program.tiles[destination[named]]
    size = tiles["bytes_per_partition"].astype(np.int64) * tiles["partitions"]
    limited: Ints = written.copy()
    limited[named] = np.minimum(limited[named], size)
    return limited


def _second_memory(instructions: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """Where the second operand is: beside the first, unless exactly one of the two is in PSUM."""
    source = instructions["source_memory"].astype(np.int64)
    split = (instructions["flags"] & Flag.SECOND_OPERAND_PSUM) != 0
    other = np.where(source == Memory.PSUM, int(Memory.SBUF), int(Memory.PSUM))
    return np.where(split, other, source)


def _flops(instructions: npt.NDArray[np.void]) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
    """(raw FLOPs, elements streamed, whether it is a transpose)."""
    opcode, flags = instructions["opcode"], instructions["flags"]
    on_tensor = np.isin(opcode, _MATMULS) & (instructions["engine"] == Engine.TENSOR)
    turned = on_tensor & ((opcode == Opcode.TRANSPOSE) | ((flags & Flag.TRANSPOSE) != 0))
    elements = instructions["partitions"].astype(np.int64) * instructions["elements"]
    flops = np.where(on_tensor, 2 * elements * instructions["columns"].astype(np.int64), 0)
    half = (instructions["input_dtype"] == DType.F32) & ((flags & Flag.FP32_HALF) != 0) & ~turned
    return np.where(half, flops // 2, flops), np.where(on_tensor, elements, 0), turned


def _speed(
    instructions: npt.NDArray[np.void], turned: npt.NDArray[np.bool_], core: NeuronCore
) -> npt.NDArray[np.float64]:
    """How fast the Tensor engine streams an instruction's type, against bf16."""
    dtype = instructions["input_dtype"]
    single = dtype == DType.F32
    speed = np.ones(len(instructions))
    speed[single] = core.tensor_speed_f32
    speed[single & turned] = core.tensor_speed_f32_transpose
    speed[dtype == DType.FP8] = core.tensor_speed_fp8
    return speed


def _sum_where(first: npt.NDArray[np.bool_], read: Ints, other: npt.NDArray[np.bool_], second: Ints) -> Ints:
    return np.where(first, read, 0) + np.where(other, second, 0)


def _of_dma(counter: Ints, dma: npt.NDArray[np.int32]) -> Ints:
    values = np.zeros(len(dma), np.int64)
    triggers = dma >= 0
    values[triggers] = counter[dma[triggers]]
    return values
