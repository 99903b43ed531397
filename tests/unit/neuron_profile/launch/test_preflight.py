import json
import sys
from pathlib import Path

import pytest

from neuron_profile.launch import preflight
from neuron_profile.launch.preflight import (
    TORCH,
    DeviceError,
    InterpreterError,
    check,
    imported_packages,
    probe,
)
from neuron_profile.launch.target_command import TargetCommand

NAMES = ("torch", "jax", "neuron_tools", "torch_mlir", "numba", "ml_dtypes", "built")
ALL = dict.fromkeys(NAMES, True)


@pytest.fixture
def fake_python(tmp_path: Path):
    """An interpreter that answers the probe with given facts, and a build with given words and status."""

    def make(build: str = "exit 0", **facts: bool) -> Path:
        python = tmp_path / "python3"
        answer = json.dumps({**ALL, **facts})
        python.write_text(f"#!/bin/sh\nif [ \"$1\" = -m ]; then {build}; fi\necho '{answer}'\n")
        python.chmod(0o755)
        return python

    return make


@pytest.fixture
def torch_script(tmp_path: Path) -> Path:
    script = tmp_path / "train.py"
    script.write_text("def main():\n    import torch.nn as nn\n")
    return script


def target(python: Path, script: Path | None = None) -> TargetCommand:
    return TargetCommand((str(python),), python, script)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("import torch", True),
        ("from torch.nn import Linear", True),
        ("import numpy, transformers as t", True),
        ("try:\n    import torchvision\nexcept ImportError:\n    pass", True),
        ("import torchlike", False),
        ("from .torch import x", False),
        ("# import torch\ntext = 'import torch'", False),
        ("this is not python", False),
    ],
)
def test_whether_a_script_imports_torch(tmp_path: Path, text: str, answer: bool) -> None:
    script = tmp_path / "script.py"
    script.write_text(text)
    assert bool(imported_packages(script) & TORCH.users) is answer


def test_the_probe_tells_what_this_python_has() -> None:
    interpreter = probe(Path(sys.executable), {})
    assert {"neuron_tools", "torch", "numba"} <= interpreter.packages


def test_a_script_that_imports_torch_needs_it(fake_python, torch_script: Path) -> None:
    python = fake_python(torch=False)
    with pytest.raises(InterpreterError) as raised:
        check(target(python, torch_script))
    assert str(raised.value) == (
        f"{torch_script} imports torch, which {python} does not have: install it with "
        f"'{python} -m pip install \"neuron-tools[torch]\"', or run the script with a Python that has it."
    )


def test_a_script_without_torch_needs_none(fake_python, tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text("print(1)")
    checked = check(target(fake_python(torch=False), script))
    assert checked is not None
    assert "torch" not in checked.packages


def test_a_script_that_imports_jax_needs_it_and_what_records_it(fake_python, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import flax.nnx as nnx")
    with pytest.raises(InterpreterError, match=r"imports jax, which .* pip install \"neuron-tools\[jax\]\"'"):
        check(target(fake_python(jax=False), script))
    with pytest.raises(InterpreterError, match="lacks ml_dtypes, which the simulated device needs"):
        check(target(fake_python(ml_dtypes=False), script))


def test_a_jax_script_needs_no_torch_device(fake_python, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(preflight, "build_device", lambda python: pytest.fail("built"))
    script = tmp_path / "train.py"
    script.write_text("import jax")
    assert check(target(fake_python(built=False, torch_mlir=False), script)) is not None


def test_a_python_with_torch_needs_the_recorder(fake_python) -> None:
    with pytest.raises(InterpreterError, match="has torch but not Neuron Tools"):
        check(target(fake_python(neuron_tools=False)))


def test_packages_that_the_device_needs(fake_python) -> None:
    with pytest.raises(
        InterpreterError, match="lacks torch_mlir and numba, which the simulated device needs"
    ):
        check(target(fake_python(torch_mlir=False, numba=False)))


def test_a_device_that_cannot_be_built_says_why(fake_python, capsys: pytest.CaptureFixture[str]) -> None:
    build = "echo 'neuron-tools: There is no C++ compiler: install g++.' >&2; exit 1"
    with pytest.raises(DeviceError, match=r"^There is no C\+\+ compiler: install g\+\+\.$"):
        check(target(fake_python(build, built=False)))
    assert "building the simulated device" in capsys.readouterr().err


def test_a_device_that_is_built_is_not_built_again(fake_python, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "build_device", lambda python: pytest.fail("built again"))
    assert check(target(fake_python())) is not None


def test_something_that_is_no_python(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\necho 'bad things' >&2\nexit 7\n")
    python.chmod(0o755)
    with pytest.raises(InterpreterError, match="is not a Python that works: bad things"):
        check(target(python))


def test_other_programs_are_not_checked() -> None:
    assert check(TargetCommand(("ls",), None, None)) is None
