"""Which generation's rules hold for a kernel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from neuron_tools.nki.target import TARGET_VARIABLES, target_name

SCRIPT = """
import nki, nki.isa, nki.language as nl, numpy as np

@nki.jit
def kernel(x):
    print(nl.tile_size.total_available_sbuf_size, nki.isa.get_nc_version())
    return x

kernel(np.ones((8, 8), np.float32))
"""


@pytest.mark.parametrize(("target", "version"), [("trn1", "gen2"), ("trn3", "gen4")])
def test_the_target_of_the_command_line_holds_for_kernels(target: str, version: str, tmp_path: Path) -> None:
    script = tmp_path / "kernel.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "neuron_tools", "--target", target, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert version in done.stdout


def test_awss_own_variables_come_before_that_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in TARGET_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    assert target_name() == "trn2"
    monkeypatch.setenv("NEURON_TOOLS_TIMED", "trn1")
    assert target_name() == "trn1"
    monkeypatch.setenv("NKI_NC_VERSION", "gen4")
    assert target_name() == "trn3"
