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


@pytest.mark.parametrize(
    "arguments", [(), ("--nonsense",), ("absent.py",), (".",), ("--target", "trn9", "script.py")]
)
def test_nothing_to_run_is_a_usage_error_in_one_line(arguments, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_an_error_is_told_from_the_scripts_own_first_line(tmp_path):
    (tmp_path / "wrong.py").write_text("def f():\n    raise ValueError('no')\n\nf()\n")
    for arguments in (("wrong.py",), ("-m", "wrong")):
        done = run(*arguments, cwd=tmp_path)
        places = [line.split()[-1] for line in done.stderr.splitlines() if line.startswith("  File ")]
        assert (done.returncode, places) == (1, ["<module>", "f"])
        assert done.stderr.endswith("ValueError: no\n")


TIMED = """
import torch
from neuron_tools.device import native
from neuron_tools.device.driver.runtime import torch_driver
x = torch.ones(256, 256, device="neuron")
start, end = (torch.neuron.Event(enable_timing=True) for _ in range(2))
start.record()
for _ in range(3):
    y = torch.relu(x @ x)
end.record()
torch.neuron.synchronize()
torch_driver.end_session()
(counts,) = torch_driver._totals.counts().values()
print(native.is_timing(), native.is_recording(), start.elapsed_time(end) > 0)
print(counts.flop_count >= 3 * 2 * 256**3, counts.busy_ns > 0)
"""


def test_the_device_keeps_time_and_counts_without_a_profile(tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("NEURON_SYSFS_ROOT", str(tmp_path_factory.mktemp("driver") / "sysfs"))
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "1")  # so that one core counts all the work
    (tmp_path / "timed.py").write_text(TIMED)
    done = run("timed.py", cwd=tmp_path)
    assert done.stdout == "True False True\nTrue True\n", done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["timed.py"]
