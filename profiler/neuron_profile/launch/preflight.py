"""Checks the Python that will run the command, so that a capture fails before it starts, in one sentence."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from neuron_profile.launch.target_command import TargetCommand
from neuron_tools.errors import NeuronToolsError

# Packages whose import brings torch in.
TORCH_USERS = frozenset({"torch", "torchvision", "torchaudio", "transformers", "accelerate", "lightning"})
PROBE_TIMEOUT_SECONDS = 60
_PROBE = """
import importlib.metadata, importlib.util, json
names = ("torch", "neuron_tools", "torch_mlir", "numba")
found = {name: importlib.util.find_spec(name) is not None for name in names}
built = False
if found["torch"] and found["neuron_tools"]:
    from neuron_tools.device.build import cache_folder, library_name
    version = importlib.metadata.version("torch")
    built = any((cache_folder() / "device").glob(f"torch{version}*/{library_name()}"))
print(json.dumps({**found, "built": built}))
"""
_BUILD = ("-m", "neuron_tools.device.build")
_BUILD_PREFIX = "neuron-tools: "


class InterpreterError(NeuronToolsError):
    """The Python of the command lacks what a capture needs."""


class DeviceError(NeuronToolsError):
    """The simulated device cannot be built for the command's Python."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What the command's Python can import.

    Attributes:
        missing: Packages that the simulated device needs and that are not there.
        has_device: The device has been built for its torch before.
    """

    path: Path
    has_torch: bool
    has_neuron_tools: bool
    missing: tuple[str, ...]
    has_device: bool


def check(target: TargetCommand) -> Interpreter | None:
    """Make sure that the command can be recorded; None where it is not a Python program.

    Raises:
        InterpreterError: Its script imports torch and its Python has none, or that Python cannot record.
        DeviceError: The device is not built yet and cannot be.
    """
    if target.interpreter is None:
        return None
    interpreter = probe(target.interpreter, os.environ)
    if interpreter.has_torch:
        _require_recorder(interpreter)
        if not interpreter.has_device:
            build_device(interpreter.path)
    elif target.script is not None and imports_torch(target.script):
        raise InterpreterError(
            f"{target.script} imports torch, which {interpreter.path} does not have: "
            f"{_install(interpreter)}, or run the script with a Python that has it."
        )
    return interpreter


def _require_recorder(interpreter: Interpreter) -> None:
    if not interpreter.has_neuron_tools:
        raise InterpreterError(
            f"{interpreter.path} has torch but not Neuron Tools, so it cannot be recorded: "
            f"{_install(interpreter)}."
        )
    if interpreter.missing:
        raise InterpreterError(
            f"{interpreter.path} lacks {' and '.join(interpreter.missing)}, which the simulated device "
            f"needs: {_install(interpreter)}."
        )


def _install(interpreter: Interpreter) -> str:
    return f"install it with '{interpreter.path} -m pip install \"neuron-tools[torch]\"'"


def probe(python: Path, environment: Mapping[str, str]) -> Interpreter:
    """Ask an interpreter what it can import, without importing it.

    Raises:
        InterpreterError: It cannot be run.
    """
    try:
        answer = subprocess.run(
            [python.absolute(), "-c", _PROBE],  # a bare name would be looked up on PATH
            env=dict(environment),
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_SECONDS,
            check=True,
        )
        found = json.loads(answer.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise InterpreterError(f"{python} is not a Python that works: {_last_line(error)}") from error
    missing = tuple(name for name in ("torch_mlir", "numba") if not found[name])
    return Interpreter(python, found["torch"], found["neuron_tools"], missing, found["built"])


def build_device(python: Path) -> None:
    """Build the simulated device for an interpreter; says so, as it takes up to a minute.

    Raises:
        DeviceError: It cannot be built, for want of a compiler for example.
    """
    print("neuron-profile: building the simulated device (once, up to a minute)", file=sys.stderr, flush=True)
    answer = subprocess.run([python.absolute(), *_BUILD], capture_output=True, text=True)
    if answer.returncode:
        lines = [line for line in answer.stderr.splitlines() if line.strip()]
        reason = lines[-1].removeprefix(_BUILD_PREFIX) if lines else "the build said nothing"
        raise DeviceError(reason)


def imports_torch(script: Path) -> bool:
    """Whether a script's own text imports torch or a package that needs it."""
    file = script / "__main__.py" if script.is_dir() else script
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    return any(_imported(node) & TORCH_USERS for node in ast.walk(tree))


def _imported(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
        return {node.module.partition(".")[0]}
    return set()


def _last_line(error: BaseException) -> str:
    text = getattr(error, "stderr", None) or str(error)
    lines = [line for line in str(text).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
