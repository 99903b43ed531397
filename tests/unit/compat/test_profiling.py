"""`torch_neuronx.profiling`: PyTorch's profiler records the device beside, window by window."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import neuron_tools
from neuron_tools import compat
from neuron_tools.errors import UsageError

SCRIPT = """
import torch
import torch_neuronx
from torch.profiler import ProfilerActivity, profile, schedule
from torch_neuronx.profiling import NeuronConfig, NeuronProfiler

config = NeuronConfig(profile_output_dir="out", capture_enabled_for_nc="0,1-3")
x = torch.ones(8, 8, device="neuron")
with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1],
    experimental_config=config,
    schedule=schedule(wait=1, warmup=1, active=1, repeat=2),
    on_trace_ready=NeuronProfiler(config).export_trace,
) as profiler:
    for power in range(6):
        x = x @ x if power in (2, 5) else x + 1
        torch_neuronx.synchronize()
        profiler.step()
"""
CAPTURE = ("-m", "neuron_profile.cli", "capture", "-o", "run.nprof", "--host-clock", "fixed", "--")


@pytest.fixture
def profiling():
    uninstall = compat.install()
    import torch_neuronx.profiling

    yield torch_neuronx.profiling
    uninstall()


def windows(folder: Path, *before: str) -> list[Path]:
    """Runs the script; the folders of its windows, in order."""
    (folder / "script.py").write_text(SCRIPT)
    subprocess.run([sys.executable, *before, "script.py"], cwd=folder, check=True, capture_output=True)
    return sorted((folder / "out").glob("*_pid_*/*"))


def operations(profile: Path) -> list[str]:
    with neuron_tools.open_profile(profile) as opened:
        assert opened.complete
        return opened.query("SELECT DISTINCT name FROM Executable")["name"].to_pylist()


def test_each_window_is_a_profile_beside_pytorchs_trace(tmp_path):
    folders = windows(tmp_path)
    assert [len(operations(folder / "device.nprof")) for folder in folders] == [1, 1]
    for folder in folders:
        assert operations(folder / "device.nprof")[0].startswith("aten::mm")
        names = {
            event.get("name") for event in json.loads((folder / "trace.json").read_text())["traceEvents"]
        }
        assert "aten::mm" in names


@pytest.mark.slow
def test_a_captured_process_is_recorded_once(tmp_path):
    folders = windows(tmp_path, *CAPTURE, sys.executable)
    assert [sorted(path.name for path in folder.iterdir()) for folder in folders] == [["trace.json"]] * 2
    assert len(operations(tmp_path / "run.nprof")) > 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"modes": []}, r"are \[\]: give a list of ProfileMode.DEVICE, "),
        ({"modes": ["device"]}, "give a list of ProfileMode"),
        ({"capture_enabled_for_nc": "0-"}, "is '0-': give cores as '0,1,2-5'"),
    ],
)
def test_a_configuration_that_means_nothing_is_refused(profiling, options, told):
    with pytest.raises(UsageError, match=told):
        profiling.NeuronConfig(**options)


def test_a_configuration_has_what_it_was_given(profiling):
    mode = profiling.ProfileMode.RUNTIME
    config = profiling.NeuronConfig(modes=[mode], capture_enabled_for_nc=[0, 1], max_events_per_nc=10)
    assert (config.modes, config.capture_enabled_for_nc, config.max_events_per_nc) == ([mode], "0,1", 10)
    assert profiling.NeuronConfig().modes == [profiling.ProfileMode.DEVICE, profiling.ProfileMode.RUNTIME]


def test_the_package_has_what_the_device_has(profiling):
    import torch_neuronx

    assert torch_neuronx.synchronize is torch.neuron.synchronize
    with torch_neuronx.stream(torch_neuronx.Stream()):
        assert torch.ones(2, device="neuron").sum().item() == 2
    with pytest.raises(AttributeError, match="has no 'neither' here"):
        torch_neuronx.neither  # noqa: B018 - reading it is what is refused
