"""Numbers that stay unique when files are joined, and references that still lead where they led."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.profile.importers.recording import Recording

STEP = 0x2545F4914F6CDD1D
LARGEST = (1 << 63) - 1
ORDER_STEP = 1 << 48
"""Distance between the numbers of two files' rows, where they count rows."""
FRAME_STEP = 1 << 22
"""Distance between the numbers of two files' stack frames."""

ROW_TABLES = frozenset({"TraceSpan", "Instruction", "DmaPacket", "DmaPacketAggregated", "SystemProfileEvents",
                        "FrameworkInstruction", "HloInstruction", "PenguinInstruction", "BirInstruction",
                        "CoreBarriers"})  # fmt: skip
"""Tables whose `id` is a number of a row."""
_REFERENCES = {
    "Flow": ("in_id", "out_id"),
    "Instruction": ("wait_cause_id",),
    "DmaPacket": ("packet_aggregation_id",),
    "AssemblyInstruction": ("instruction_id",),
    "KernelInstructions": ("instruction_id",),
}
_FRAME_NUMBERS = {
    "StackFrame": ("file_location_id",),
    "StackFrameFileLocation": ("id", "file_name_id", "function_name_id"),
    "StackFrameFileName": ("id",),
    "StackFrameFunctionName": ("id",),
}
_FRAME_TEXTS = {
    "StackFrame": ("id", "parent_frame_id"),
    "Instruction": ("stack_frame_ids",),
    "FrameworkInstruction": ("stack_frame_ids",),
    "HostSpan": ("stack_frame_ids",),
    "HostSample": ("stack_frame_ids",),
}
_FRAME = re.compile(r"[^,\[\]\s\"]+")


def renumber(table: str, columns: dict[str, Any], file: int, *, in_order: bool) -> None:
    """Gives the rows of the `file`-th file numbers of their own; those of the first stay as they are.

    Numbers that count rows are moved on by a step of the file, so that their order stays: that of a simulated
    core's instructions tells in which they were issued. Hashes are mixed with a constant of the file
    (exclusive or): within a file they stay different, and those of two files meet only by chance.

    Args:
        in_order: Whether all numbers of the file are below `ORDER_STEP`.
    """
    if not file:
        return
    own = ("id",) if table in ROW_TABLES else ()
    for name in (*own, *_REFERENCES.get(table, ())):
        if name in columns:
            columns[name] = _own_numbers(columns[name], file, in_order=in_order)
    for name in _FRAME_NUMBERS.get(table, ()):
        if name in columns:
            columns[name] = _shifted(columns[name], file)
    for name in _FRAME_TEXTS.get(table, ()):
        if name in columns:
            columns[name] = _prefixed(columns[name], file)


def counts_rows(recording: Recording) -> bool:
    """Whether the rows of a file are numbered from 0 on, rather than by hashes."""
    for table in ROW_TABLES & recording.row_counts.keys():
        for batch in recording.batches(table):
            if "id" in batch.schema.names:
                extremes = pc.min_max(batch.column("id")).as_py()
                if extremes["max"] is not None and not 0 <= extremes["min"] <= extremes["max"] < ORDER_STEP:
                    return False
    return True


def _own_numbers(column: pa.Array, file: int, *, in_order: bool) -> pa.Array:
    if in_order:
        return pc.add(column, pa.scalar(file * ORDER_STEP, pa.int64()))
    return pc.bit_wise_xor(column, pa.scalar((file * STEP) & LARGEST, pa.int64()))


def _shifted(column: pa.Array, file: int) -> pa.Array:
    """Numbers, or texts of numbers, moved on."""
    if pa.types.is_integer(column.type):
        return pc.add(column, pa.scalar(file * FRAME_STEP, column.type))
    return _prefixed(column, file)


def _prefixed(column: pa.Array, file: int) -> pa.Array:
    """Each number in a text of numbers moved on; other names get the file's number before them."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = [
        _FRAME.sub(lambda found: _moved(found.group(), file), text) for text in coded.dictionary.to_pylist()
    ]
    return pa.array(texts, pa.string()).take(coded.indices)


def _moved(name: str, file: int) -> str:
    return str(int(name) + file * FRAME_STEP) if name.isdecimal() and len(name) < 10 else f"{file}:{name}"
