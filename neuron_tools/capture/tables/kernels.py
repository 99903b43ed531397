"""Where the instructions of NKI kernels come from: KernelInstructions, KernelStackFrames, loop variables.

These tables are written once per executable; Instruction rows refer to them by `kernel_instruction_name`, and
carry the kernel's own line and stack themselves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.capture.table_template import TableTemplate
from neuron_tools.capture.tables.ids import at
from neuron_tools.capture.tables.origin import LINE_COLUMNS, LINE_NUMBER_COLUMNS
from neuron_tools.records.executable import Executable
from neuron_tools.records.kernel_source import KernelSource
from neuron_tools.records.program import Frame

KERNEL_TEXTS = ("kernel_instruction_name", "nki_source_location")
_LINE_COLUMNS = LINE_COLUMNS | LINE_NUMBER_COLUMNS
EXECUTABLE_SHIFT = 32  # ids of executable n start at n << 32


@dataclass(frozen=True)
class KernelColumns:
    """What a kernel's instructions have in the Instruction table; entry -1 of each list is "not known".

    Attributes:
        stack: (rows,) place of each instruction's call stack in the lists below, -1 = none.
        leaves: Id of each stack's innermost frame.
        files, lines: File and line of each stack's innermost frame.
        names: (rows,) name of each instruction's call, None for one that is no kernel's.
    """

    stack: npt.NDArray[np.int32]
    leaves: list[str]
    files: list[str | None]
    lines: npt.NDArray[np.int32]
    names: list[str | None]


def kernel_columns(executable: Executable, stacks: StackRegistry) -> KernelColumns | None:
    """The columns of an executable that was made from a kernel; None for others."""
    source = executable.kernel
    if source is None:
        return None
    frames = [stack[0] if stack else None for stack in source.stacks]
    names = _call_names(executable, source)
    return KernelColumns(
        source.stack,
        [stacks.leaf(stack) for stack in source.stacks] + [""],
        [frame.file if frame else None for frame in frames] + [None],
        np.array([frame.line if frame else 0 for frame in frames] + [0], np.int32),
        [names[call] if call >= 0 else None for call in source.call.tolist()],
    )


def no_kernel(rows: int, pools: TextPools) -> dict[str, npt.NDArray[np.int32]]:
    """The kernel columns of instructions that belong to none."""
    return {name: np.full(rows, pools[name].code(None), np.int32) for name in KERNEL_TEXTS}


def with_kernel(table: TableTemplate, kernel: KernelColumns | None, pools: TextPools) -> TableTemplate:
    """Instruction rows with the kernel's lines instead of those of the framework operation."""
    if kernel is None:
        return table
    placed = with_kernel_lines(table, kernel, np.arange(table.rows), pools)
    places = [f"{file}:{line}" if file else None for file, line in zip(kernel.files, kernel.lines.tolist())]
    texts = dict(placed.texts)
    location = pools["nki_source_location"].codes(places)[kernel.stack]
    texts["nki_source_location"] = np.where(kernel.stack >= 0, location, texts["nki_source_location"])
    texts["kernel_instruction_name"] = pools["kernel_instruction_name"].codes(kernel.names)
    return replace(placed, texts=texts)


def with_kernel_lines(
    table: TableTemplate, kernel: KernelColumns | None, instruction: Ints, pools: TextPools
) -> TableTemplate:
    """Rows with the kernel's lines instead of those of the framework operation.

    Args:
        instruction: (rows,) the instruction that each row belongs to, -1 = none.
    """
    if kernel is None:
        return table
    stack = at(kernel.stack.astype(np.int64), instruction)
    known = stack >= 0
    numbers, texts = dict(table.numbers), dict(table.texts)
    numbers["source_line"] = np.where(known, kernel.lines[stack], numbers["source_line"])
    for name, values in (("stack_frame_ids", kernel.leaves), ("source_file", kernel.files)):
        if name in texts:
            texts[name] = np.where(known, pools[name].codes(values)[stack], texts[name])
    own = {name: known for name in _LINE_COLUMNS if name in texts or name in numbers}
    return replace(table, texts=texts, numbers=numbers, own=own)


def kernel_tables(executable: Executable, process_idx: int) -> Mapping[str, Mapping[str, Any]]:
    """Rows of the kernel tables for one executable; none where it is no kernel."""
    source = executable.kernel
    if source is None:
        return {}
    base = executable.number << EXECUTABLE_SHIFT
    frames = _FrameTree(base)
    leaves = np.array([frames.leaf(stack) for stack in source.stacks] + [-1], np.int64)
    tables = {"KernelStackFrames": frames.rows(process_idx), "KernelInstructions": _calls(
        executable, source, leaves, base, process_idx)}  # fmt: skip
    if len(source.iterations):
        tables["KernelIterationVariables"] = _iterations(source, base, process_idx)
    if source.launches:
        tables["KernelLaunch"] = _launches(executable, source, process_idx)
    if source.transformations:
        tables["Transformation"] = _transformations(executable, source, process_idx)
    return tables


def _launches(executable: Executable, source: KernelSource, process_idx: int) -> dict[str, Any]:
    """KernelLaunch: one row for each kernel call in the program that can be made again."""
    launches = source.launches
    return {
        "module": [launch.module for launch in launches],
        "function": [launch.function for launch in launches],
        "file_path": [launch.file for launch in launches],
        "line_number": np.array([launch.line for launch in launches], np.int64),
        "arguments": [launch.arguments for launch in launches],
        "grid": [json.dumps(launch.grid) for launch in launches],
        "cores": np.array([launch.cores for launch in launches], np.int32),
        "executable_idx": np.full(len(launches), executable.number, np.int32),
        "process_idx": np.full(len(launches), process_idx, np.int32),
    }


def _transformations(executable: Executable, source: KernelSource, process_idx: int) -> dict[str, Any]:
    """Transformation: one row for each pass and line of the kernel that it changed."""
    changes = source.transformations
    frames = [source.stacks[change.stack][:1] for change in changes]
    return {
        "pass_name": [change.name for change in changes],
        "removed_instructions": np.array([change.calls for change in changes], np.int64),
        "saved_hbm_bytes": np.array([change.hbm_bytes for change in changes], np.int64),
        "saved_busy_ns": np.array([change.busy_ns for change in changes], np.int64),
        "source_file": [frame[0].file if frame else None for frame in frames],
        "source_line": np.array([frame[0].line if frame else 0 for frame in frames], np.int32),
        "executable_idx": np.full(len(changes), executable.number, np.int32),
        "process_idx": np.full(len(changes), process_idx, np.int32),
    }


def _call_names(executable: Executable, source: KernelSource) -> list[str]:
    """Name of each call: kernel, executable, its own name or the instruction's, and number."""
    kernels = [f"{name}.{executable.number}" for name in source.names]
    named = zip(source.call_kind.tolist(), source.call_names())
    return [f"{kernels[kind]}/{name}.{call}" for call, (kind, name) in enumerate(named)]


def _calls(
    executable: Executable, source: KernelSource, leaves: Ints, base: int, process_idx: int
) -> dict[str, Any]:
    """KernelInstructions: one row per call, from the first instruction that it became."""
    count = len(source.call_kind)
    called = np.flatnonzero(source.call >= 0)
    calls, places = np.unique(source.call[called], return_index=True)
    first = np.zeros(count, np.int64)
    first[calls] = called[places]
    stack, iteration = source.stack[first], source.iteration[first].astype(np.int64)
    innermost = [frames[0] if frames else Frame("", 0) for frames in source.stacks] + [Frame("", 0)]
    depths = np.array([len(frames) for frames in source.stacks] + [0], np.int64)
    files = [frame.file for frame in innermost]
    return {
        "kernel_instruction_name": _call_names(executable, source),
        "stack_frame_id": _nullable(leaves[stack]),
        "stack_frame_depth": depths[stack],
        "iteration_variables_id": _nullable(np.where(iteration >= 0, base + iteration, -1)),
        "iteration_variable_depth": _iteration_depths(source)[iteration],
        "file_path": [files[row] for row in stack.tolist()],
        "line_number": np.array([frame.line for frame in innermost], np.int64)[stack],
        "pcore_idx": np.zeros(count, np.int64),
        "process_idx": np.full(count, process_idx, np.int32),
    }


def _iteration_depths(source: KernelSource) -> Ints:
    """Loops around each iteration, itself included; entry -1 is 0."""
    parents = source.iterations[:, 0] if len(source.iterations) else np.zeros(0, np.int32)
    depths = np.zeros(len(parents) + 1, np.int64)
    for row, parent in enumerate(parents.tolist()):
        depths[row] = depths[parent] + 1 if parent >= 0 else 1
    return depths


def _iterations(source: KernelSource, base: int, process_idx: int) -> dict[str, Any]:
    """KernelIterationVariables: one row per value that a loop variable took."""
    table = source.iterations.astype(np.int64)
    loops = table[:, 1]
    parents = table[:, 0]
    names, files = [loop[0] for loop in source.loops], [loop[1] for loop in source.loops]
    return {
        "iteration_variable_id": base + np.arange(len(table)),
        "variable_name": [names[loop] for loop in loops.tolist()],
        "variable_value": table[:, 2],
        "parent_iteration_variable_id": _nullable(np.where(parents >= 0, base + parents, -1)),
        "pcore_idx": np.zeros(len(table), np.int64),
        "file_path": [files[loop] for loop in loops.tolist()],
        "line_number": np.array([loop[2] for loop in source.loops], np.int64)[loops],
        "process_idx": np.full(len(table), process_idx, np.int32),
    }


def _nullable(values: Ints) -> Any:
    import pyarrow as pa

    return pa.array(values, mask=values < 0)


class _FrameTree:
    """Frames of a kernel's call stacks, each once per caller."""

    def __init__(self, base: int) -> None:
        self._base = base
        self._known: dict[tuple[int, Frame], int] = {}

    def leaf(self, stack: tuple[Frame, ...]) -> int:
        """Id of a stack's innermost frame; -1 for an empty one."""
        parent = -1
        for frame in reversed(stack):
            parent = self._known.setdefault((parent, frame), self._base + len(self._known))
        return parent

    def rows(self, process_idx: int) -> dict[str, Any]:
        """KernelStackFrames."""
        frames = list(self._known)
        return {
            "stack_frame_id": list(self._known.values()),
            "fully_qualified_function_name": [frame.function for _, frame in frames],
            "parent_stack_frame_id": [parent if parent >= 0 else None for parent, _ in frames],
            "pcore_idx": [0] * len(frames),
            "file_path": [frame.file for _, frame in frames],
            "line_number": [frame.line for _, frame in frames],
            "process_idx": [process_idx] * len(frames),
        }
