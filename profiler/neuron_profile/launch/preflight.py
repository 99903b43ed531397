"""Checks the Python that will run the command, so that a capture fails before it starts, in one sentence."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from neuron_profile.launch.target_command import TargetCommand
from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.frozen import frozen
from neuron_tools.notebook import SUFFIX, code_cells

PROBE_TIMEOUT_SECONDS = 60
_PROBE = """
import importlib.metadata, importlib.util, json
names = ("torch", "jax", "neuron_tools", "torch_mlir", "numba", "ml_dtypes")
found = {name: importlib.util.find_spec(name) is not None for name in names}
built = False
if found["torch"] and found["neuron_tools"]:
    from neuron_tools.device.build import is_there
    built = is_there(importlib.metadata.version("torch"))
print(json.dumps({**found, "built": built}))
"""
_BUILD = ("-m", "neuron_tools.device.build", "device")
_BUILD_PREFIX = "neuron-tools: "
_PROGRESS = f"{_BUILD_PREFIX}compiled "


class InterpreterError(NeuronToolsError):
    """The Python of the command lacks what a capture needs."""


class DeviceError(NeuronToolsError):
    """The simulated device cannot be built for the command's Python."""


@frozen
class Framework:
    """A way in which a program reaches the simulated device.

    Attributes:
        name: The package, and the extra of ours that goes with it.
        users: Packages whose import brings it in.
        needs: What recording it needs beside the package and Neuron Tools.
    """

    name: str
    users: frozenset[str]
    needs: tuple[str, ...]


TORCH = Framework(
    "torch",
    frozenset({"torch", "torchvision", "torchaudio", "transformers", "accelerate", "lightning"}),
    ("torch_mlir", "numba"),
)
JAX = Framework(
    "jax", frozenset({"jax", "flax", "optax", "equinox", "haiku", "orbax"}), ("numba", "ml_dtypes")
)
FRAMEWORKS = (TORCH, JAX)


@frozen
class Interpreter:
    """What the command's Python can import.

    Attributes:
        packages: Those of the probed packages that are there.
        has_device: The device has been built for its torch before.
    """

    path: Path
    packages: frozenset[str]
    has_device: bool

    def missing(self, framework: Framework) -> list[str]:
        """What recording a framework needs and that is not there."""
        return [name for name in framework.needs if name not in self.packages]


def check(target: TargetCommand) -> Interpreter | None:
    """Make sure that the command can be recorded; None where it is not a Python program.

    Raises:
        InterpreterError: Its script imports a framework that its Python lacks or cannot record.
        DeviceError: The device is not built yet and cannot be.
    """
    if target.interpreter is None:
        return None
    interpreter = probe(target.interpreter, os.environ)
    imported = imported_packages(target.script) if target.script is not None else frozenset()
    for framework in FRAMEWORKS:
        if imported & framework.users:
            _require(framework, interpreter, target.script)
    uses_torch = bool(imported & TORCH.users) or not imported & JAX.users
    if "torch" in interpreter.packages and uses_torch:
        _require(TORCH, interpreter, target.script)
        if not interpreter.has_device:
            build_device(interpreter.path)
    return interpreter


def _require(framework: Framework, interpreter: Interpreter, script: Path | None) -> None:
    """Refuse a Python that cannot run or cannot record a framework."""
    install = f"install it with '{interpreter.path} -m pip install \"neuron-tools[{framework.name}]\"'"
    if framework.name not in interpreter.packages:
        raise InterpreterError(
            f"{script} imports {framework.name}, which {interpreter.path} does not have: "
            f"{install}, or run the script with a Python that has it."
        )
    if "neuron_tools" not in interpreter.packages:
        raise InterpreterError(
            f"{interpreter.path} has {framework.name} but not Neuron Tools, so it cannot be recorded: "
            f"{install}."
        )
    missing = interpreter.missing(framework)
    if missing:
        raise InterpreterError(
            f"{interpreter.path} lacks {' and '.join(missing)}, which the simulated device needs: {install}."
        )


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
    packages = frozenset(name for name, there in found.items() if there and name != "built")
    return Interpreter(python, packages, bool(found["built"]))


def build_device(python: Path) -> None:
    """Build the simulated device for an interpreter; tells how far it is, as it takes up to a minute.

    Raises:
        DeviceError: It cannot be built, for want of a compiler for example.
    """
    _say("building the simulated device from source, once, as there is none for this torch (up to a minute)")
    command = [str(python.absolute()), *_BUILD]
    lines: list[str] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stderr is not None
        for line in filter(str.strip, process.stderr):
            lines.append(line.strip())
            if lines[-1].startswith(_PROGRESS):
                _say(lines[-1].removeprefix(_BUILD_PREFIX))
    if process.returncode:
        raise DeviceError(lines[-1].removeprefix(_BUILD_PREFIX) if lines else "the build said nothing")


def _say(text: str) -> None:
    print(f"neuron-profile: {text}", file=sys.stderr, flush=True)


def imported_packages(script: Path) -> frozenset[str]:
    """Top-level packages that a script's own text imports."""
    file = script / "__main__.py" if script.is_dir() else script
    trees = [tree for text in _texts(file) for tree in _parsed(text)]
    return frozenset().union(*(_imported(node) for tree in trees for node in ast.walk(tree)))


def _texts(file: Path) -> list[str] | list[bytes]:
    """A script's text; a notebook's cells, of which those with magics are no Python."""
    try:
        return code_cells(file) if file.suffix == SUFFIX else [file.read_bytes()]
    except (OSError, UsageError):
        return []


def _parsed(text: str | bytes) -> list[ast.Module]:
    try:
        return [ast.parse(text)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


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
