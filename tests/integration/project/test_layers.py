import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.project.checkout import copy_packages

LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")

pytestmark = pytest.mark.skipif(not LINT_IMPORTS.exists(), reason="import-linter is missing")


@pytest.fixture(scope="module")
def clean_copy(tmp_path_factory):
    return copy_packages(tmp_path_factory.mktemp("packages"), flat=True)


@pytest.fixture
def packages(clean_copy, tmp_path):
    return shutil.copytree(clean_copy, tmp_path / "packages")


def lint(folder):
    return subprocess.run([LINT_IMPORTS, "--no-cache"], cwd=folder, capture_output=True, text=True)


def test_the_project_keeps_its_layers(packages):
    result = lint(packages)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("neuron_tools/errors.py", "neuron_tools.profile.schema"),
        ("neuron_tools/profile/schema.py", "neuron_tools.hardware.catalogue"),
        ("neuron_tools/hardware/catalogue.py", "neuron_tools.simulator.check"),
        ("neuron_tools/records/program.py", "neuron_tools.compiler.hlo"),
        ("neuron_tools/compiler/hlo.py", "neuron_tools.device.native"),
        ("neuron_tools/device/native.py", "neuron_tools.frontends.executables"),
        ("neuron_tools/frontends/executables.py", "neuron_tools.capture.session"),
        ("neuron_tools/capture/session.py", "neuron_profile.cli"),
        ("neuron_monitor/__init__.py", "neuron_profile.analysis.overview"),
        ("neuron_monitor/__init__.py", "torch"),
        ("neuron_explorer/__init__.py", "neuron_profile.commands.capture"),
        ("neuron_explorer/__init__.py", "torch"),
        ("neuron_explorer/__init__.py", "neuron_tools.device.native"),
    ],
)
def test_an_import_upwards_is_caught(packages, importer, imported):
    with open(packages / importer, "a") as file:
        file.write(f"\nimport {imported}\n")
    result = lint(packages)
    assert result.returncode == 1
    assert f"-> {imported}" in result.stdout


def test_a_package_without_a_place_is_caught(packages):
    (packages / "neuron_tools/helpers").mkdir()
    (packages / "neuron_tools/helpers/__init__.py").touch()
    result = lint(packages)
    assert result.returncode == 1
    assert "neuron_tools.helpers" in result.stdout
