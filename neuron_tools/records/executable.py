"""One compiled and simulated computation, and its file in the capture log.

The captured process writes an executable once, the assembler reads it once and replays it for every
execution. The file is a NumPy archive of the Program's and the Simulation's tables plus one JSON text for
the names, so that it can be read without running code from it. Modules that run the same code share its
file: that of a further one holds only its own rows of the framework's operations.
"""

from __future__ import annotations

import json
import math
import os
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import Any, TypeVar
from zipfile import BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt

from neuron_tools.errors import NeuronToolsError
from neuron_tools.records.json_values import decode, encode, field_types
from neuron_tools.records.kernel_source import KernelSource, with_source
from neuron_tools.records.program import FrameworkOperation, Program, with_framework
from neuron_tools.records.simulation import Simulation

Built = TypeVar("Built", Program, Simulation, KernelSource)
_PROGRAM_PREFIX, _SIMULATION_PREFIX, _KERNEL_PREFIX = "program_", "simulation_", "kernel_"
_SECOND_PROGRAM_PREFIX, _SECOND_SIMULATION_PREFIX = "second_program_", "second_simulation_"
_SECOND_KERNEL_PREFIX = "second_kernel_"
# What reading a damaged archive ends in: zipfile, NumPy and JSON each have their own ways.
_DAMAGE = (
    OSError, EOFError, BadZipFile, ValueError, LookupError, TypeError, AttributeError, RuntimeError,
    MemoryError, ArithmeticError, SyntaxError, TokenError, struct.error, zlib.error,
)  # fmt: skip


class ExecutableError(NeuronToolsError):
    """An executable file of a capture log cannot be read."""


@dataclass(frozen=True)
class Executable:
    """A Program with its simulated times.

    Attributes:
        number: The number records refer to it by; counts from 1 in each process.
        kind: "eager" (one operation), "fused" (several that waited together) or "graph" (torch.compile, jit).
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
    def kernel(self) -> KernelSource | None:
        """The NKI kernel that the Program was made from."""
        return getattr(self.program, "source", None)

    @property
    def of_cores(self) -> tuple[Executable, ...]:
        """What each physical core of the logical one runs."""
        parts = zip(self.program.of_cores, self.simulation.of_cores)
        return tuple(replace(self, program=program, simulation=times) for program, times in parts)

    @property
    def duration_ns(self) -> int:
        """Device time of one execution."""
        return -(-int(self.simulation.duration_ps) // 1000)


def shares_code(one: Executable, other: Executable) -> bool:
    """Whether two executables are the same code, run by different modules."""
    return one.program.instructions is other.program.instructions and one.simulation is other.simulation


def of_another_module(first: Executable, framework: tuple[FrameworkOperation, ...]) -> Executable | None:
    """The same code with the framework's operations of another module; None where they are others."""
    program = with_framework(first.program, framework)
    return None if program is None else replace(first, program=program)


def save_shared(executable: Executable, path: Path, code: Path) -> None:
    """Write an executable whose code stands in the file `code` beside it; it appears whole or not at all.

    Raises:
        OSError: The disk is full or the folder cannot be written.
    """
    header = {**_facts(executable), "code": code.name, "framework": encode(executable.program.framework)}
    _write(path, {"header": _text(header)})


def save(executable: Executable, path: Path) -> None:
    """Write the executable; the file appears whole or not at all.

    Raises:
        OSError: The disk is full or the folder cannot be written.
    """
    _write(path, _members(executable))


def packed(executable: Executable) -> bytes:
    """What `save` writes."""
    stream = BytesIO()
    np.savez(stream, **_members(executable))
    return stream.getvalue()


def _members(executable: Executable) -> dict[str, Any]:
    """The arrays of an executable's file by name."""
    program, arrays = _taken_apart(executable.program, _PROGRAM_PREFIX, Program)
    simulation, times = _taken_apart(executable.simulation, _SIMULATION_PREFIX, Simulation)
    second: dict[str, Any] = {}
    for name, prefix, kind, record in _of_second(executable):
        if record is not None:
            second[name], own = _taken_apart(record, prefix, kind)
            arrays.update(own)
    kernel: dict[str, Any] | None = None
    kernel_arrays: dict[str, Any] = {}
    if executable.kernel is not None:
        kernel, kernel_arrays = _taken_apart(executable.kernel, _KERNEL_PREFIX, KernelSource)
    header = {
        **_facts(executable),
        "program": program,
        "simulation": simulation,
        "kernel": kernel,
        "second": second,
    }
    return {"header": _text(header), **arrays, **times, **kernel_arrays}


def _facts(executable: Executable) -> dict[str, Any]:
    """What is an executable's own, even where it shares its code."""
    return {name: getattr(executable, name) for name in ("number", "name", "kind", "compile_time_ns")}


def _text(header: Mapping[str, Any]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(json.dumps(header, separators=(",", ":")).encode(), np.uint8)


def _write(path: Path, arrays: Mapping[str, Any]) -> None:
    temporary = path.with_suffix(".tmp")
    try:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: Path, of_file: Callable[[Path], Executable] | None = None) -> Executable:
    """Read an executable.

    Args:
        path: Its file.
        of_file: Finds the executable of another file, whose code this one may share; None reads it.

    Raises:
        ExecutableError: The file is damaged or of another version.
    """
    try:
        with ZipFile(path) as archive:
            members = {name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()}
        arrays = {name: _array(content) for name, content in members.items()}
        header = json.loads(arrays.pop("header").tobytes())
        if "code" in header:
            return _shared(header, path, of_file or _with_own_code)
        return _whole(header, arrays)
    except _DAMAGE as error:
        raise ExecutableError(f"The compiled computation {path} cannot be read ({error}).") from error


def _array(content: bytes) -> npt.NDArray[Any]:
    """What `np.load` makes of an array's file; the few kinds of header there are, it parses each time.

    Raises:
        ValueError: It is none, or one of objects.
    """
    start = 10 + int.from_bytes(content[8:10], "little")
    shape, in_columns, dtype = _form(content[:start])
    table = np.frombuffer(bytearray(content), dtype, math.prod(shape), start)
    return table.reshape(shape, order="F" if in_columns else "C")


@lru_cache(maxsize=1024)
def _form(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns follow each other, and type."""
    stream = BytesIO(header)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array of an unknown version")
    return np.lib.format.read_array_header_1_0(stream)


def _with_own_code(path: Path) -> Executable:
    """Read the executable of a file that holds code: one that shares it must not lead to a further file.

    Raises:
        ExecutableError: The file is damaged, or holds no code.
    """
    return load(path, _refuse)


def _refuse(path: Path) -> Executable:
    raise ValueError(f"{path.name} holds no code")


def _shared(header: dict[str, Any], path: Path, of_file: Callable[[Path], Executable]) -> Executable:
    """The executable of a file that `save_shared` wrote.

    Raises:
        ValueError: The other file holds the code of other operations.
    """
    code = path.parent / Path(header.pop("code")).name
    framework = decode(tuple[FrameworkOperation, ...], header.pop("framework"))
    executable = of_another_module(of_file(code), framework)
    if executable is None:
        raise ValueError(f"{code.name} holds other code")
    return replace(executable, **header)


def _whole(header: dict[str, Any], arrays: dict[str, Any]) -> Executable:
    """The executable of a file that `save` wrote."""
    program = _put_together(Program, header.pop("program"), arrays, _PROGRAM_PREFIX)
    simulation = _put_together(Simulation, header.pop("simulation"), arrays, _SIMULATION_PREFIX)
    second = header.pop("second", {})
    if "program" in second:
        other = _put_together(Program, second["program"], arrays, _SECOND_PROGRAM_PREFIX)
        if "kernel" in second:
            source = _put_together(KernelSource, second["kernel"], arrays, _SECOND_KERNEL_PREFIX)
            other = with_source(other, source)
        program = replace(program, second=other)
    if "simulation" in second:
        times = _put_together(Simulation, second["simulation"], arrays, _SECOND_SIMULATION_PREFIX)
        simulation = replace(simulation, second=times)
    kernel = header.pop("kernel", None)
    if kernel is not None:
        source = _put_together(KernelSource, kernel, arrays, _KERNEL_PREFIX)
        program = with_source(program, source)
    return Executable(program=program, simulation=simulation, **header)


def _of_second(executable: Executable) -> tuple[tuple[str, str, Any, Any], ...]:
    """(name, prefix of its tables, type, record or None) of what the second physical core has of its own."""
    program = executable.program.second
    return (
        ("program", _SECOND_PROGRAM_PREFIX, Program, program),
        ("kernel", _SECOND_KERNEL_PREFIX, KernelSource, getattr(program, "source", None)),
        ("simulation", _SECOND_SIMULATION_PREFIX, Simulation, executable.simulation.second),
    )


def _taken_apart(record: Any, prefix: str, kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A dataclass's fields as JSON values, and its tables under prefixed names."""
    values = {field.name: getattr(record, field.name) for field in fields(kind) if field.name != "second"}
    tables = {name for name, value in values.items() if isinstance(value, np.ndarray)}
    others = {name: encode(value) for name, value in values.items() if name not in tables}
    return others, {prefix + name: values[name] for name in sorted(tables)}


def _put_together(
    kind: Callable[..., Built], others: Mapping[str, Any], arrays: Mapping[str, Any], prefix: str
) -> Built:
    types = field_types(kind)
    tables = {name.removeprefix(prefix): table for name, table in arrays.items() if name.startswith(prefix)}
    return kind(**tables, **{name: decode(types[name], value) for name, value in others.items()})
