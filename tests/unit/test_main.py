"""`python -m neuron_tools` runs a script as Python would."""

import subprocess
import sys

import pytest


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "neuron_tools", *arguments], cwd=cwd, capture_output=True, text=True
    )


@pytest.fixture
def script(tmp_path):
    (tmp_path / "beside.py").write_text("value = 7\n")
    path = tmp_path / "script.py"
    path.write_text("import sys, beside\nprint(__name__, sys.argv[1:], beside.value)\nsys.exit(3)\n")
    return path


def test_a_script_sees_its_arguments_its_folder_and_sets_the_exit_status(script, tmp_path_factory):
    done = run(str(script), "--epochs", "2", cwd=tmp_path_factory.mktemp("elsewhere"))
    assert (done.returncode, done.stdout) == (3, "__main__ ['--epochs', '2'] 7\n")


def test_a_module_is_run_from_the_working_folder(script):
    done = run("-m", "script", "x", cwd=script.parent)
    assert (done.returncode, done.stdout) == (3, "__main__ ['x'] 7\n")


@pytest.mark.parametrize("arguments", [(), ("--nonsense",), ("absent.py",)])
def test_nothing_to_run_is_a_usage_error_in_one_line(arguments, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
