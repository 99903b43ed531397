import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.integration.project.checkout import PACKAGE_FOLDERS, ROOT, copy_packages

IMPORT_NAMES = [Path(folder).name for folder in PACKAGE_FOLDERS]
DATA_SUFFIXES = {".json", ".csv", ".cpp", ".h", ".html", ".css", ".js", ".mjs"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of the checkout, built in a copy so that nothing is left in the checkout."""
    source = copy_packages(tmp_path_factory.mktemp("source"), flat=False)
    target = tmp_path_factory.mktemp("wheel")
    command = "pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir"
    subprocess.run([sys.executable, "-m", *command.split(), target, source], check=True, capture_output=True)
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder with the wheel's content, in which neither torch nor jax can be imported."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    (folder / "sitecustomize.py").write_text(
        "import sys\nfor name in ('torch', 'jax'):\n    sys.modules[name] = None\n"
    )
    return folder


def run(installed, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=installed, env=environment, capture_output=True, text=True
    )


def test_the_wheel_has_every_module_and_data_file(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in PACKAGE_FOLDERS:
        base = (ROOT / folder).parent
        files = [path for path in (ROOT / folder).rglob("*") if path.suffix in DATA_SUFFIXES | {".py"}]
        assert not {str(path.relative_to(base)) for path in files} - names


def test_the_wheel_has_nothing_else(wheel):
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(IMPORT_NAMES)


@pytest.mark.parametrize("name", IMPORT_NAMES)
def test_each_package_imports_without_torch_from_where_it_was_installed(installed, name):
    result = run(installed, "-c", f"import {name}; print({name}.__file__)")
    assert result.stdout.strip() == str(installed / name / "__init__.py"), result.stderr


@pytest.mark.parametrize("module", ["neuron_profile.cli", "neuron_explorer.cli"])
def test_commands_explain_themselves_without_torch(installed, module):
    result = run(installed, "-m", module, "--help")
    assert result.returncode == 0, result.stderr
    assert "Usage:" in result.stdout


def test_console_scripts_name_functions_that_exist(wheel, installed):
    with zipfile.ZipFile(wheel) as archive:
        (entry_points,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
    text = (installed / entry_points).read_text()
    section = text.split("[console_scripts]")[1].split("[")[0]
    scripts = dict(line.split(" = ") for line in section.strip().splitlines())
    assert {"neuron-profile", "neuron-explorer"} <= set(scripts)
    for target in scripts.values():
        module, _, function = target.partition(":")
        result = run(installed, "-c", f"import {module}; assert callable({module}.{function})")
        assert result.returncode == 0, result.stderr
