"""The default on Trn2: two physical cores share each execution of a logical one, and count as one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neuron_profile.analysis.hotspots import find_hotspots
from neuron_profile.analysis.occupancy import measure_occupancy
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.verify import verify
from tests.integration.capture.programs import PYTHON, Folder

PROGRAM = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)
).to("neuron", torch.bfloat16)
inputs = torch.randn(1024, 512).to("neuron", torch.bfloat16)
for step in range(2):
    model(inputs).float().square().mean().backward()
print(model[0].weight.grad.float().abs().sum().item())
"""


@pytest.fixture(autouse=True)
def default_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEURON_LOGICAL_NC_CONFIG")


def calls(profile: Profile) -> dict[str, int]:
    return {row.name: row.cost.count for row in find_hotspots(profile).operations}


def test_two_cores_are_the_default_and_one_can_be_asked_for(folder: Folder) -> None:
    two = folder.capture(PROGRAM, "--host-clock", "fixed", output="two.nprof")
    one = folder.capture(PROGRAM, "--host-clock", "fixed", "--lnc", "1", output="one.nprof")
    assert one.stdout == two.stdout
    assert "LNC 2" in two.stderr
    assert "on 1 NeuronCore" in two.stderr
    with folder.profile("one.nprof") as single, folder.profile("two.nprof") as pair:
        assert [*verify(pair)] == []
        assert calls(pair) == calls(single)
        alone, together = measure_occupancy(single), measure_occupancy(pair)
        assert (together.executions, together.cores) == (alone.executions, 1)
        assert together.device_ns < 0.85 * alone.device_ns
        assert find_hotspots(pair).device_ns == pytest.approx(together.device_ns)
    compared = json.loads(folder.neuron_profile("diff", "one.nprof", "two.nprof", "--json").stdout)
    assert compared
    found = json.loads(folder.neuron_profile("advise", "two.nprof", "--json").stdout)
    assert all(0 <= (each["gain_ns"] or 0) <= each["total_ns"] for each in found["findings"])


def test_the_driver_shows_64_logical_cores_and_a_process_on_its_two_physical_ones(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(folder.path / "sysfs")
    monkeypatch.setenv("NEURON_SYSFS_ROOT", str(root))
    monkeypatch.setenv("NEURON_RT_VISIBLE_CORES", "1")
    folder.run(PYTHON, "-m", "neuron_tools.device.driver", "load", "--target", "trn2.48xlarge")
    folder.capture(PROGRAM)
    listed = json.loads(folder.run(str(Path(PYTHON).with_name("neuron-ls")), "-j").stdout)
    assert sum(device["nc_count"] for device in listed) == 64
    used = [
        core
        for core in range(8)
        if int((root / f"neuron0/neuron_core{core}/stats/other_info/flop_count/total").read_text())
    ]
    assert used == [2, 3]
