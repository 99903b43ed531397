"""An optimizer of several passes over its parameters is found, and `fused=True` saves what is promised."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuron_profile.analysis.advice.advise import advise
from neuron_profile.analysis.whatif.run import WhatIf
from tests.integration.capture.programs import Folder

pytestmark = pytest.mark.slow

STEPS = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 16))
model.to("neuron")
run, inputs = torch.compile(model), torch.ones(32, 512).to("neuron")
weights, biases = ([p for p in model.parameters() if p.dim() == rank] for rank in (2, 1))
groups = [{"params": weights, "weight_decay": 0.1}, {"params": biases, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=0.001)
for _ in range(12):
    optimizer.zero_grad()
    run(inputs).square().sum().backward()
    optimizer.step()  # passes
"""
WIDE = "torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 16))"
MANY = "torch.nn.Sequential(torch.nn.Linear(512, 64), *(torch.nn.Linear(64, 64) for _ in range(24)))"
TOLERANCE = 0.15


@pytest.mark.parametrize("model", [WIDE, MANY], ids=["memory takes longest", "engines take longest"])
def test_passes_of_adam_are_found_and_the_fused_form_saves_what_is_promised(
    folder: Folder, model: str
) -> None:
    times, steps = {}, STEPS.replace(WIDE, model)
    for name, text in {"fused": steps.replace("lr=0.001", "lr=0.001, fused=True"), "passes": steps}.items():
        folder.capture(text, "--target", "trn1", "--host-clock", "fixed", output=f"{name}.nprof")
        times[name] = WhatIf(folder.profile(f"{name}.nprof")).recorded_ns()
    (found,) = (each for each in advise(folder.profile("passes.nprof")) if each.rule == "unfused_updates")
    line = (folder.path / "program.py").read_text().splitlines()[found.place.line - 1]
    assert (Path(found.place.file).name, line) == ("program.py", "    optimizer.step()  # passes")
    assert found.gain_ns == pytest.approx(times["passes"] - times["fused"], rel=TOLERANCE)
    assert "fused=True" in found.change
    assert "unfused_updates" not in {each.rule for each in advise(folder.profile("fused.nprof"))}


def test_nothing_is_promised_where_the_passes_run_together(folder: Folder) -> None:
    folder.capture(STEPS, "--target", "trn1", "--host-clock", "fixed", "--eager-fusion", "on")
    assert "unfused_updates" not in {each.rule for each in advise(folder.profile())}
