"""Lightning's Trainer and Fabric find the device by themselves and train as on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(find_spec("lightning") is None, reason="pip install lightning")

TRAINING = """
import json, sys, torch, lightning
from torch.utils.data import DataLoader

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))
        self.told = []

    def training_step(self, batch, number):
        result = self.layers(batch)
        loss = result.float().square().mean()
        self.told.append((str(batch.device), str(result.dtype), loss.item()))
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)

torch.manual_seed(1)
batches = DataLoader(torch.randn(32, 16), batch_size=8)
for options in json.loads(sys.argv[1]):
    model = Model()
    trainer = lightning.Trainer(
        max_epochs=1, enable_progress_bar=False, logger=False, enable_checkpointing=False,
        enable_model_summary=False, **options,
    )
    trainer.fit(model, batches)
    if trainer.global_rank == 0:
        print("told", json.dumps([trainer.world_size, *model.told]))
fabric = lightning.Fabric(devices=1)
print("fabric", fabric.device)
try:
    lightning.Trainer(accelerator="neuron", devices=99)
except ValueError as error:
    print("refused", error)
"""


def trained(folder: Path, *options: dict[str, Any]) -> tuple[list[Any], str]:
    """What each Trainer tells: ranks, then (device, dtype, loss) of each step; and all output."""
    script = folder / "train.py"
    script.write_text(TRAINING)
    done = subprocess.run(
        [sys.executable, str(script), json.dumps(options)], cwd=folder, text=True, capture_output=True,
        env={**os.environ, "NEURON_SYSFS_ROOT": str(folder / "tree")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    return [json.loads(line.removeprefix("told ")) for line in lines if line.startswith("told ")], done.stdout


def losses(told: list[Any]) -> list[float]:
    return [loss for _, _, loss in told[1:]]


def test_it_takes_the_device_by_itself_with_the_losses_of_the_cpu(tmp_path: Path) -> None:
    (cpu, found, mixed), output = trained(
        tmp_path,
        {"accelerator": "cpu", "devices": 1},
        {"devices": 1},
        {"accelerator": "neuron", "devices": 1, "precision": "bf16-mixed"},
    )
    assert found[1][0] == mixed[1][0] == "neuron:0"
    assert losses(found) == pytest.approx(losses(cpu), rel=1e-5)
    assert mixed[1][1] == "torch.bfloat16"
    assert losses(mixed) == pytest.approx(losses(cpu), rel=0.05)
    assert "fabric neuron:0" in output
    assert "neuron devices here, but devices=99 was asked for" in output


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["auto", "ddp", "fsdp"])
def test_several_devices_train_as_several_processes_of_the_cpu(tmp_path: Path, strategy: str) -> None:
    ((count, *steps),), _ = trained(tmp_path, {"devices": 2, "strategy": strategy})
    (reference,), _ = trained(tmp_path, {"accelerator": "cpu", "devices": 2, "strategy": "ddp"})
    assert (count, steps[0][0]) == (2, "neuron:0")
    assert losses([count, *steps]) == pytest.approx(losses(reference), rel=1e-5)
