"""Autoload gives PyTorch the device, and never breaks `import torch`."""

import os
import subprocess
import sys

import pytest
import torch

from neuron_tools.device import autoload


def run(program, **environment):
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **environment}
    )


def test_import_torch_alone_gives_the_device():
    result = run(
        "import torch; print((torch.ones(2, device='neuron') * 3).tolist(), torch.neuron.device_count())"
    )
    assert result.stdout == "[3.0, 3.0] 2\n"


@pytest.mark.parametrize(("switch", "is_found"), [("", True), ("0", False)])
def test_libraries_find_the_device_by_awss_package_as_in_a_capture(switch, is_found):
    program = "import torch, importlib.util as u; print(u.find_spec('torch_neuronx') is not None)"
    assert run(program, NEURON_TOOLS_AWS_NAMES=switch).stdout == f"{is_found}\n"


def test_without_a_compiler_torch_imports_with_one_line(tmp_path):
    program = "import torch; print(torch.ones(1).item())"
    result = run(program, NEURON_TOOLS_CACHE=str(tmp_path), PATH="/nowhere", CXX="")
    assert (result.returncode, result.stdout) == (0, "1.0\n")
    assert "The neuron device is not available: There is no C++ compiler" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_failing_registration_becomes_a_warning(monkeypatch):
    def fail():
        raise OSError("broken")

    monkeypatch.setattr(autoload, "register", fail)
    with pytest.warns(RuntimeWarning, match="not available: broken"):
        autoload.autoload()


def test_registering_twice_is_harmless():
    module = torch.neuron
    autoload.register()
    assert torch.neuron is module


@pytest.mark.parametrize(
    ("environment", "count", "current"),
    [
        ({"NEURON_RT_NUM_CORES": "5", "LOCAL_RANK": "7"}, 5, 2),
        ({"NEURON_RT_VISIBLE_CORES": "0-2,7"}, 4, 0),
        ({"NEURON_RT_NUM_CORES": "nonsense"}, 2, 0),
        ({"NEURON_TOOLS_INSTANCE_CORES": "32", "LOCAL_RANK": "33"}, 32, 1),
        ({"NEURON_TOOLS_TIMED": "trn2.48xlarge", "LOCAL_RANK": "63"}, 64, 63),
        ({"NEURON_TOOLS_TIMED": "trn2"}, 2, 0),
        ({"NEURON_TOOLS_TIMED": "trn2.48xlarge", "NEURON_RT_NUM_CORES": "4"}, 4, 0),
    ],
)
def test_the_environment_gives_cores_and_the_current_one(environment, count, current):
    clean = {"NEURON_RT_NUM_CORES": "", "NEURON_RT_VISIBLE_CORES": "", "LOCAL_RANK": ""}
    program = "import torch; print(torch.neuron.device_count(), torch.neuron.current_device())"
    assert run(program, **{**clean, **environment}).stdout.split() == [str(count), str(current)]
