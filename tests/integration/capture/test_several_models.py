"""Models that are traced or loaded one after the other run on cores of their own, and are counted there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.capture.programs import Folder, rows

SERVE = """
import torch, torch_neuronx
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()).eval().requires_grad_(False)
features = torch.randn(8, 64)
models = [torch_neuronx.trace(model, features)]
torch.jit.save(models[0], "model.pt")
models.append(torch.jit.load("model.pt"))
for index, count in ((1, 3), (0, 2)):
    for _ in range(count):
        torch.testing.assert_close(models[index](features), model(features))
"""


def test_two_loaded_models_run_on_two_cores(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from neuron_tools.device.driver.__main__ import load

    root = tmp_path / "sysfs"
    monkeypatch.setenv("NEURON_SYSFS_ROOT", str(root))
    monkeypatch.setenv("NEURON_RT_NUM_CORES", "2")
    load(root, "trn2")
    folder.capture(SERVE)
    query = "SELECT pcore_idx, count(*) FROM ExecutionInfo GROUP BY 1 ORDER BY 1"
    assert rows(folder.profile(), query) == [(0, 2), (1, 3)]
    counters = [
        root / f"neuron0/neuron_core{core}/stats/other_info/inference_count/total" for core in range(2)
    ]
    assert [int(counter.read_text()) for counter in counters] == [2, 3]


UNLOADED = """
import gc, torch, torch_neuronx
torch.manual_seed(0)
model = torch.nn.Linear(64, 64).eval().requires_grad_(False)
features = torch.randn(8, 64)
torch.jit.save(torch_neuronx.trace(model, features), "model.pt")
gc.collect()
for _ in range(3):
    loaded = torch.jit.load("model.pt")
    loaded(features)
    del loaded
    gc.collect()
both = [torch.jit.load("model.pt") for _ in range(2)]
for each in both:
    each(features)
"""


@pytest.mark.slow
def test_a_core_is_free_again_when_its_model_is_deleted(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURON_RT_NUM_CORES", "2")
    folder.capture(UNLOADED)
    query = "SELECT pcore_idx, count(*) FROM ExecutionInfo GROUP BY 1 ORDER BY 1"
    assert rows(folder.profile(), query) == [(0, 4), (1, 1)]
