"""What an archive says about itself, for people and for tools that do not read Programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from neuron_tools.records.program import Engine, Memory, Program, Tensor, TensorKind
from neuron_tools.version import installed_version

FORMAT, VERSION = "neuron-tools-neff", 1


def manifest_of(program: Program, options: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest: format, name, target, tensors by kind, how much there is of what, warnings."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "producer": f"neuron-tools {installed_version()}",
        "name": program.name,
        "target": program.target,
        "compiler_options": dict(options),
        "inputs": _tensors(program, TensorKind.INPUT),
        "weights": _tensors(program, TensorKind.WEIGHT),
        "outputs": _tensors(program, TensorKind.OUTPUT),
        "instructions": _instructions(program),
        "dma_bytes": int(program.dmas["bytes"].astype(np.int64).sum()),
        "hbm_bytes": _hbm_bytes(program),
        "hlo_operations": len(program.hlo),
        "model_flops": sum(operation.model_flops for operation in program.hlo),
        "source_files": sorted({frame.file for op in program.framework for frame in op.stack}),
        "warnings": list(program.warnings),
    }


def _instructions(program: Program) -> dict[str, int]:
    counts = np.bincount(program.instructions["engine"].astype(np.int64), minlength=len(Engine))
    return {engine.title: int(count) for engine, count in zip(Engine, counts) if count}


def _tensors(program: Program, kind: TensorKind) -> list[dict[str, Any]]:
    return [_described(tensor) for tensor in program.tensors if tensor.kind == kind]


def _described(tensor: Tensor) -> dict[str, Any]:
    return {"name": tensor.name, "dtype": tensor.dtype.name.lower(), "shape": list(tensor.shape)}


def _hbm_bytes(program: Program) -> dict[str, int]:
    """Bytes that the DMAs read from and write to HBM."""
    size = program.dmas["bytes"].astype(np.int64)
    return {
        "read": int(size[program.dmas["source_memory"] == Memory.HBM].sum()),
        "written": int(size[program.dmas["destination_memory"] == Memory.HBM].sum()),
    }
