# mypy: disable-error-code="no-any-return"
"""Compiled evaluation of the instruction-cost rules over whole instruction tables.

Imported only when a Program is timed: it needs numba.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Floats, Ints, Table
from neuron_tools.compiled import compiled, compiled_part
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode

MODES = ("none", "matmul", "weights", "copy", "scalar", "two_inputs", "two_16bit", "reduce", "zero")
SITUATIONS = ("sbuf_16bit", "sbuf_16bit_strided", "psum_16bit", "sbuf_32bit", "one_psum", "16bit")
CYCLES_PER_ELEMENT, MODE, MINIMUM, INTERVAL, LATENCY, SBUF_SOURCE = range(6)
RULE_COLUMNS = 6

_NONE, _MATMUL, _WEIGHTS, _COPY, _SCALAR, _TWO_INPUTS, _TWO_16BIT, _REDUCE, _ZERO = range(len(MODES))
_SBUF_16BIT, _SBUF_16BIT_STRIDED, _PSUM_16BIT, _SBUF_32BIT, _ONE_PSUM, _16BIT = range(len(SITUATIONS))
_F32, _SBUF, _PSUM, _TENSOR = int(DType.F32), int(Memory.SBUF), int(Memory.PSUM), int(Engine.TENSOR)
_TRANSPOSE_OPCODE = int(Opcode.TRANSPOSE)
_TRANSPOSE, _STRIDED, _REDUCES = int(Flag.TRANSPOSE), int(Flag.STRIDED), int(Flag.REDUCES)
_SECOND_PSUM, _FP32_HALF = int(Flag.SECOND_OPERAND_PSUM), int(Flag.FP32_HALF)
_VECTOR, _SCALAR_ENGINE, _GPSIMD = int(Engine.VECTOR), int(Engine.SCALAR), int(Engine.GPSIMD)
SBUF_PORT, PSUM_PORT = 1, 2
_REDUCE_CYCLES = 64.0  # reading the accumulator (nki.isa activation_reduce, tensor_scalar_reduce)


class CostTables(NamedTuple):
    """The rules of one NeuronCore as arrays.

    Attributes:
        rule_of: (engines, opcodes) row of `rules`.
        rules: (rules, RULE_COLUMNS) numbers of each rule, cycles.
        speeds: (modes, situations) speed of each performance mode.
        ps_per_cycle: (engines,) length of a cycle.
        dtype_bytes: (dtypes,) bytes of an element.
        matmul_passes: (dtypes, 3) passes of the moving operand; second column in transpose mode, third where
            the operands lie on one partition.
        load_passes: (2,) passes of one fp32 LDWEIGHTS; second entry in transpose mode.
    """

    rule_of: Ints
    rules: Floats
    speeds: Floats
    ps_per_cycle: Floats
    dtype_bytes: Ints
    matmul_passes: Floats
    load_passes: Floats


@compiled_part
def _speed(instruction: Any, mode: int, tables: CostTables) -> float:
    """Speed of the performance mode that dtype, memories and layout allow."""
    wide = max(tables.dtype_bytes[instruction.input_dtype], tables.dtype_bytes[instruction.output_dtype])
    strided = (instruction.flags & _STRIDED) != 0
    in_sbuf = instruction.source_memory == _SBUF and instruction.destination_memory == _SBUF
    in_psum = instruction.source_memory == _PSUM or instruction.destination_memory == _PSUM
    speeds = tables.speeds[mode]
    if mode == _COPY:
        if 0 < wide <= 2 and not in_psum:
            return speeds[_SBUF_16BIT_STRIDED] if strided else speeds[_SBUF_16BIT]
        if 0 < wide <= 2:
            return speeds[_PSUM_16BIT]
        if wide <= 4 and in_sbuf and not strided:
            return speeds[_SBUF_32BIT]
    elif mode == _TWO_INPUTS:
        if (instruction.flags & _SECOND_PSUM) != 0:
            return speeds[_ONE_PSUM]
        if 0 < wide <= 2 and in_sbuf and not strided:
            return speeds[_SBUF_16BIT]
    elif mode == _TWO_16BIT:
        if 0 < wide <= 2 and in_sbuf and not strided:
            return speeds[_SBUF_16BIT]
    elif 0 < wide <= 2:
        return speeds[_16BIT]
    return 1.0


@compiled_part
def _tensor_cycles(instruction: Any, mode: int, rule: Floats, tables: CostTables) -> tuple[float, float]:
    """(interval, latency) of LDWEIGHTS and MATMUL: passes over the operand, and one cycle a column."""
    transpose = 1 if (instruction.flags & _TRANSPOSE) != 0 or instruction.opcode == _TRANSPOSE_OPCODE else 0
    single = instruction.input_dtype == _F32
    half = single and (instruction.flags & _FP32_HALF) != 0
    columns = float(max(instruction.columns, 1))
    if mode == _WEIGHTS:
        passes = tables.load_passes[transpose] if single else 1.0
        if single and not half and transpose == 0:
            passes *= 2.0
        interval = min(64.0, max(columns, rule[MINIMUM])) * passes
        return interval, columns * rule[CYCLES_PER_ELEMENT] * passes + rule[LATENCY]
    one_row = instruction.partitions == 1 and transpose == 0
    passes = tables.matmul_passes[instruction.input_dtype, 2 if one_row else transpose]
    if half and transpose == 0:
        passes *= 0.5
    stream = max(instruction.elements * rule[CYCLES_PER_ELEMENT], rule[MINIMUM]) * passes
    return stream + rule[INTERVAL], stream + rule[LATENCY] + columns


@compiled
def evaluate_costs(instructions: Table, tables: CostTables) -> tuple[Ints, Ints]:
    """Interval and latency of every instruction at full rate, picoseconds; shapes (rows,)."""
    rows = instructions.shape[0]
    interval_ps = np.empty(rows, np.int64)
    latency_ps = np.empty(rows, np.int64)
    for row in range(rows):
        instruction = instructions[row]
        rule = tables.rules[tables.rule_of[instruction.engine, instruction.opcode]]
        mode = int(rule[MODE])
        if mode in (_MATMUL, _WEIGHTS):
            interval, latency = _tensor_cycles(instruction, mode, rule, tables)
        else:
            stream = instruction.elements * rule[CYCLES_PER_ELEMENT]
            if mode != _NONE:
                stream /= _speed(instruction, mode, tables)
            if instruction.source_memory == _SBUF:
                stream += rule[SBUF_SOURCE]
            if (instruction.flags & _REDUCES) != 0:
                stream += _REDUCE_CYCLES
            interval = max(rule[MINIMUM], stream + rule[INTERVAL])
            latency = stream + rule[LATENCY]
        cycle = tables.ps_per_cycle[instruction.engine]
        interval_ps[row] = int(interval * cycle + 0.5)
        latency_ps[row] = int(latency * cycle + 0.5)
    return interval_ps, latency_ps


@compiled
def shared_ports(
    instructions: Table, tables: CostTables, sbuf_sharing: int, psum_sharing: int
) -> npt.NDArray[np.uint8]:
    """Ports that each instruction needs for itself: bits SBUF_PORT and PSUM_PORT; shape (rows,).

    `sbuf_sharing` and `psum_sharing` are `NeuronCore.vector_gpsimd_sbuf_port` and `vector_scalar_psum_port`.
    """
    ports = np.zeros(instructions.shape[0], np.uint8)
    for row in range(instructions.shape[0]):
        instruction = instructions[row]
        engine = instruction.engine
        if instruction.dma >= 0 or instruction.elements <= 0:
            continue
        if sbuf_sharing > 0 and engine in (_VECTOR, _GPSIMD):
            in_sbuf = instruction.source_memory == _SBUF or instruction.destination_memory == _SBUF
            mode = int(tables.rules[tables.rule_of[engine, instruction.opcode], MODE])
            plain = mode == _NONE or _speed(instruction, mode, tables) == 1.0
            if in_sbuf and not (sbuf_sharing == 2 and engine == _VECTOR and plain):
                ports[row] |= SBUF_PORT
        if psum_sharing > 0 and engine in (_VECTOR, _SCALAR_ENGINE):
            in_psum = instruction.source_memory == _PSUM or instruction.destination_memory == _PSUM
            if in_psum or (instruction.flags & _SECOND_PSUM) != 0:
                ports[row] |= PSUM_PORT
    return ports
