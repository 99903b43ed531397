"""The `operands` text of instructions, in the spirit of the published profiles: types, memories, extents."""

from __future__ import annotations

import numpy as np

from neuron_tools.records.program import DType, Flag, Memory, Opcode, Program

_FIELDS = [
    "opcode", "input_dtype", "output_dtype", "source_memory", "destination_memory", "flags", "partitions",
    "columns", "elements", "signal",
]  # fmt: skip
_STATIONARY = (Opcode.MATMUL, Opcode.LDWEIGHTS, Opcode.TRANSPOSE)


def operand_texts(program: Program) -> list[str]:
    """`Instruction.operands` of each row; equal rows are formatted once."""
    table = program.instructions
    packed = np.empty(len(table), [(name, table.dtype[name]) for name in _FIELDS])
    for name in _FIELDS:
        packed[name] = table[name]
    places: dict[bytes, int] = {}  # np.unique compares records one by one: 40 times as slow
    where = [places.setdefault(row, len(places)) for row in packed.view(f"V{packed.itemsize}").tolist()]
    texts = [_text(row) for row in np.frombuffer(b"".join(places), packed.dtype)]
    return [texts[place] for place in where]


def _text(row: np.void) -> str:
    parts = []
    if row["signal"] >= 0:
        parts.append(f"S[{row['signal']}]++@complete")
    if row["source_memory"] != Memory.NONE:
        parts.append(f"src={_operand(row['input_dtype'], row['source_memory'], row)}")
    if row["destination_memory"] != Memory.NONE:
        parts.append(f"dst={_operand(row['output_dtype'], row['destination_memory'], row)}")
    if row["opcode"] in _STATIONARY:
        parts.append(f"{row['partitions']}*{row['columns']}")
    if row["flags"] & Flag.ACCUMULATE:
        parts.append("acc")
    return " ".join(parts)


def _operand(dtype: int, memory: int, row: np.void) -> str:
    extent = f"[{row['partitions']},{row['elements']}]"
    return f"{DType(int(dtype)).name.lower()}@{Memory(int(memory)).name}{extent}"
