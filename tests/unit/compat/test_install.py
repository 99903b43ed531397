"""AWS's names are importable after `install`, and only where nothing else has the name."""

import importlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys

import pytest

from neuron_tools import compat


@pytest.fixture
def folder(tmp_path):
    package = tmp_path / "made_up_kernels"
    package.mkdir()
    (package / "__init__.py").write_text("from made_up_kernels.language import answer\n")
    (package / "language.py").write_text("answer = 42\n")
    return tmp_path


@pytest.fixture
def finder(folder, monkeypatch):
    finder = compat.CompatibleNames(folder)
    monkeypatch.setattr(compat, "_finder", finder)
    uninstall = compat.install()
    yield finder
    uninstall()
    for name in [name for name in sys.modules if name.startswith("made_up_kernels")]:
        del sys.modules[name]


def test_a_package_of_the_folder_is_imported_with_its_submodules(finder):
    assert importlib.import_module("made_up_kernels").answer == 42


def test_a_real_package_is_preferred(finder, tmp_path, monkeypatch):
    real = tmp_path / "real"
    (real / "made_up_kernels").mkdir(parents=True)
    (real / "made_up_kernels" / "__init__.py").write_text("answer = 'real'\n")
    monkeypatch.syspath_prepend(str(real))
    assert importlib.import_module("made_up_kernels").answer == "real"


def test_installing_twice_adds_one_finder_and_uninstalling_removes_it(finder):
    uninstall = compat.install()
    assert sys.meta_path.count(finder) == 1
    uninstall()
    assert finder not in sys.meta_path
    assert importlib.util.find_spec("made_up_kernels") is None


def test_names_of_other_packages_are_not_ours(finder):
    assert finder.find_spec("xml") is None
    assert finder.find_spec("made_up_kernels.language", ["x"]) is None


def test_a_package_with_a_version_has_metadata_under_its_distributions_name(finder, folder):
    (folder / "made_up_kernels" / "__init__.py").write_text('__version__ = "1.2"\n')
    assert importlib.metadata.version("made-up-kernels") == "1.2"
    assert importlib.metadata.metadata("made_up_kernels")["Name"] == "made_up_kernels"


def test_a_package_without_a_version_has_no_metadata(finder):
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("made_up_kernels")


@pytest.mark.parametrize(("switch", "found"), [("1", True), ("0", False)])
def test_metadata_of_torch_xla_is_found_where_its_modules_are(monkeypatch, switch, found):
    monkeypatch.setenv(compat.SWITCH, switch)
    context = importlib.metadata.DistributionFinder.Context(name="torch-xla")
    assert bool([*compat.CompatibleNames().find_distributions(context)]) is found


def test_a_plain_interpreter_does_not_know_the_names():
    code = "import importlib.util as u, neuron_tools.compat as c; print([u.find_spec(n) for n in c.names()])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout) <= set("[None, ]\n")


def test_at_start_a_captured_python_installs_the_names_and_hides_no_sitecustomize(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.seen = True\n")
    startup = compat.FOLDER / "startup"
    code = (
        "import sys, neuron_tools.compat as c;"
        f"print(c._finder in sys.meta_path, seen, {str(startup)!r} in sys.path)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(startup), str(tmp_path)])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.split() == ["True", "True", "False"]
