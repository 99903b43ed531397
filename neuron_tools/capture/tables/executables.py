"""Executable and TensorInfo: what was compiled, once per executable."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.records.executable import Executable
from neuron_tools.records.program import Memory, Program


def executable_row(executable: Executable, process_idx: int, execution_count: int) -> dict[str, list[Any]]:
    """The Executable row."""
    program = executable.program
    return {
        "executable_idx": [executable.number],
        "process_idx": [process_idx],
        "name": [executable.name],
        "kind": [executable.kind],
        "instruction_count": [len(program.instructions)],
        "duration_ns": [executable.duration_ns],
        "compile_time_ns": [executable.compile_time_ns or None],
        "hlo_operation_count": [len(program.hlo)],
        "execution_count": [execution_count],
    }


def tensor_rows(executable: Executable, process_idx: int) -> dict[str, list[Any]]:
    """TensorInfo rows of a compiled graph, with how often each tensor is loaded in one execution."""
    program = executable.program
    loads = [_loads(program, row) for row in range(len(program.tensors))]
    return {
        "variable_name": [tensor.name for tensor in program.tensors],
        "type": [tensor.kind.name.lower() for tensor in program.tensors],
        "format": [tensor.dtype.name.lower() for tensor in program.tensors],
        "shape": ["[" + ",".join(map(str, tensor.shape)) + "]" for tensor in program.tensors],
        "size": [tensor.byte_count for tensor in program.tensors],
        "node": [executable.number] * len(program.tensors),
        "executable_idx": [executable.number] * len(program.tensors),
        "load_to_sbuf_dma_count": [count for count, _ in loads],
        "load_to_sbuf_total_size_bytes": [total for _, total in loads],
        "load_to_sbuf_avg_size_bytes": [total // count if count else 0 for count, total in loads],
        "load_to_sbuf_repeat_factor": [
            total / tensor.byte_count if tensor.byte_count else 0.0
            for (_, total), tensor in zip(loads, program.tensors)
        ],
        "process_idx": [process_idx] * len(program.tensors),
    }


def _loads(program: Program, tensor: int) -> tuple[int, int]:
    """How many DMAs load a tensor to SBUF, and their bytes."""
    dmas = program.dmas
    loading = (dmas["tensor"] == tensor) & (dmas["destination_memory"] == Memory.SBUF)
    return int(np.count_nonzero(loading)), int(dmas["bytes"][loading].sum())
