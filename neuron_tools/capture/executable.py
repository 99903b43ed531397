"""One compiled and simulated computation, and its file in the capture log.

The captured process writes an executable once, the assembler reads it once and replays it for every
execution. The file is a NumPy archive of the Program's and the Simulation's tables plus one JSON text for
the names, so that it can be read without running code from it.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from neuron_tools.errors import NeuronToolsError
from neuron_tools.simulator.program import (
    DType,
    Engine,
    Frame,
    FrameworkOperation,
    HloOperation,
    Program,
    Queue,
    QueueKind,
    Tensor,
    TensorKind,
)
from neuron_tools.simulator.simulation import Simulation

_PROGRAM_ARRAYS = ("instructions", "waits", "dmas", "tiles")
_SIMULATION_ARRAYS = tuple(field.name for field in fields(Simulation) if field.name != "duration_ps")
_SIMULATION_PREFIX = "simulation_"
# What reading a damaged archive ends in: zipfile, NumPy and JSON each have their own ways.
_DAMAGE = (
    OSError, EOFError, BadZipFile, ValueError, LookupError, TypeError, AttributeError, RuntimeError,
    MemoryError, ArithmeticError, SyntaxError, struct.error, zlib.error,
)  # fmt: skip


class ExecutableError(NeuronToolsError):
    """An executable file of a capture log cannot be read."""


@dataclass(frozen=True)
class Executable:
    """A Program with its simulated times.

    Attributes:
        number: The number records refer to it by; counts from 1 in each process.
        kind: "eager" (one operation) or "graph" (torch.compile, jit).
        duration_ns: Device time of one execution, rounded up to nanoseconds.
        compile_time_ns: Host time to lower, compile and simulate; 0 under the fixed clock.
    """

    number: int
    name: str
    kind: str
    program: Program
    simulation: Simulation
    compile_time_ns: int = 0

    @property
    def duration_ns(self) -> int:
        """Device time of one execution."""
        return -(-int(self.simulation.duration_ps) // 1000)


def save(executable: Executable, path: Path) -> None:
    """Write the executable; the file appears whole or not at all.

    Raises:
        OSError: The disk is full or the folder cannot be written.
    """
    program = executable.program
    arrays: dict[str, Any] = {name: getattr(program, name) for name in _PROGRAM_ARRAYS}
    for name in _SIMULATION_ARRAYS:
        arrays[_SIMULATION_PREFIX + name] = getattr(executable.simulation, name)
    header = json.dumps(_header(executable), separators=(",", ":")).encode()
    arrays["header"] = np.frombuffer(header, np.uint8)
    temporary = path.with_suffix(".tmp")
    try:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: Path) -> Executable:
    """Read an executable.

    Raises:
        ExecutableError: The file is damaged or of another version.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
        return _from_parts(header, arrays)
    except _DAMAGE as error:
        raise ExecutableError(f"The compiled computation {path} cannot be read ({error}).") from error


def _header(executable: Executable) -> dict[str, Any]:
    program = executable.program
    return {
        "number": executable.number,
        "name": executable.name,
        "kind": executable.kind,
        "compile_time_ns": executable.compile_time_ns,
        "program": {
            "name": program.name,
            "target": program.target,
            "semaphore_count": program.semaphore_count,
            "queues": [(q.name, int(q.engine), int(q.kind)) for q in program.queues],
            "tensors": [(t.name, int(t.kind), int(t.dtype), t.shape) for t in program.tensors],
            "hlo": [asdict(h) for h in program.hlo],
            "framework": [asdict(f) for f in program.framework],
            "activations": program.activations,
            "warnings": program.warnings,
            "metadata": dict(program.metadata),
        },
        "simulation_duration_ps": int(executable.simulation.duration_ps),
    }


def _from_parts(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Executable:
    text = header["program"]
    program = Program(
        name=text["name"],
        target=text["target"],
        **{name: arrays[name] for name in _PROGRAM_ARRAYS},
        semaphore_count=text["semaphore_count"],
        queues=tuple(Queue(n, Engine(e), QueueKind(k)) for n, e, k in text["queues"]),
        tensors=tuple(Tensor(n, TensorKind(k), DType(d), tuple(s)) for n, k, d, s in text["tensors"]),
        hlo=tuple(_hlo(h) for h in text["hlo"]),
        framework=tuple(_framework(f) for f in text["framework"]),
        activations=tuple(text["activations"]),
        warnings=tuple(text["warnings"]),
        metadata=text["metadata"],
    )
    simulation = Simulation(
        **{name: arrays[_SIMULATION_PREFIX + name] for name in _SIMULATION_ARRAYS},
        duration_ps=header["simulation_duration_ps"],
    )
    return Executable(
        number=header["number"],
        name=header["name"],
        kind=header["kind"],
        program=program,
        simulation=simulation,
        compile_time_ns=header["compile_time_ns"],
    )


def _hlo(fields: Mapping[str, Any]) -> HloOperation:
    return HloOperation(
        **{**fields, "framework": tuple(fields["framework"]), "shares": tuple(fields["shares"])}
    )


def _framework(fields: Mapping[str, Any]) -> FrameworkOperation:
    stack = tuple(Frame(**frame) for frame in fields["stack"])
    return FrameworkOperation(**{**fields, "stack": stack})
