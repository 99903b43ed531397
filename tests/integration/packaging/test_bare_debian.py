"""A new machine: Debian 12 with python3-venv, no compiler, and the wheel that NEURON_TOOLS_WHEEL names."""

import os
import shutil
import subprocess

import pytest

from tests.integration.packaging.conftest import WHEEL_VARIABLE
from tests.integration.project.checkout import ROOT


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not os.environ.get(WHEEL_VARIABLE), reason=f"{WHEEL_VARIABLE} names no wheel")
@pytest.mark.skipif(
    os.getuid() != 0 or not all(map(shutil.which, ("debootstrap", "unshare"))),
    reason="needs root, debootstrap and unshare",
)
def test_the_readmes_commands_work_without_a_compiler():
    command = [ROOT / "scripts/bare_debian.sh", os.environ[WHEEL_VARIABLE]]
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    print(result.stdout, result.stderr)  # its times, for `pytest -rP`
    assert result.returncode == 0
