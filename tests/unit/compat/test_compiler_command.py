"""The command `neuronx-cc` for programs that hand HLO modules to AWS's compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from neuron_tools.compat.commands import command_path
from neuron_tools.compat.compiler_command import main
from neuron_tools.neff import read_neff


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A file with a serialized HLO module."""
    lowered = jax.jit(lambda x, w: jax.nn.relu(x @ w)).lower(jnp.ones((64, 128)), jnp.ones((128, 32)))
    file = tmp_path / "hlo_module.pb"
    file.write_bytes(lowered.compiler_ir("hlo").as_serialized_hlo_module_proto())
    return file


def test_a_module_becomes_an_artifact_for_the_target(module: Path, tmp_path: Path) -> None:
    output = tmp_path / "file.neff"
    words = ["compile", "--framework", "XLA", str(module), "--pipeline", "compile", "SaveTemps"]
    assert main([*words, "--target", "trn1", f"--output={output}"]) == 0
    program = read_neff(output).program
    assert program.target == "trn1"
    assert len(program.instructions)


def test_what_is_no_module_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "hlo_module.pb"
    file.write_bytes(b"no module")
    assert main(["compile", str(file), "--target", "trn2", "--output", str(tmp_path / "file.neff")]) == 1
    assert f"{file}: This is no HLO module" in capsys.readouterr().err
    earlier = tmp_path / "file.neff"
    earlier.write_bytes(b"of an earlier run")
    assert main(["compile", str(tmp_path / "absent.pb"), "--output", str(earlier)]) == 1
    assert "is a file to read: name the HLO module" in capsys.readouterr().err


def test_without_a_module_the_usage_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage: neuronx-cc compile" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["compile", "--help"]])
def test_help_tells_the_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert "usage: neuronx-cc compile" in capsys.readouterr().out


def test_programs_find_the_command_behind_their_own_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURON_TOOLS_CACHE", str(tmp_path))
    own = os.pathsep.join(["/usr/bin", "/bin"])
    path = command_path({"PATH": own})
    assert path.startswith(own + os.pathsep)
    assert command_path({"PATH": path}) == path
    command = Path(path.split(os.pathsep)[-1]) / "neuronx-cc"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    shown = subprocess.run(
        [command, "--version"], capture_output=True, text=True, env=environment, check=True
    )
    assert "Neuron Tools" in shown.stdout
