"""A step that compiles each time is found first, at its line, in each of the ways to run PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuron_profile.analysis.advice.advise import advise
from tests.integration.capture.programs import Folder

pytestmark = pytest.mark.slow

MODEL = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
batches = [torch.ones(8 + number, 16) for number in range(5)]
"""
NATIVE = """
run = torch.compile(model.to("neuron"), dynamic=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in batches:
    optimizer.zero_grad()
    loss = run(batch.to("neuron")).square().sum()  # each time
    loss.backward()
    optimizer.step()
"""
XLA = """
import torch_xla.core.xla_model as xm
model.to(xm.xla_device())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in batches:
    optimizer.zero_grad()
    model(batch.to(xm.xla_device())).square().sum().backward()
    xm.optimizer_step(optimizer, barrier=True)  # each time
"""
TRACED = """
import torch_neuronx
for batch in batches:
    run = torch_neuronx.trace(model, batch)
    run(batch)  # each time
"""
TRACED_FOR_INF1 = """
import torch_neuron
for batch in batches:
    run = torch.neuron.trace(model, example_inputs=[batch])
    run(batch)  # each time
"""
WAYS = {
    "native": ("trn1", NATIVE),
    "xla": ("trn1", XLA),
    "traced": ("inf2", TRACED),
    "traced for Inf1": ("inf1", TRACED_FOR_INF1),
}
"""Target, program; the line that compiles each time is marked."""


@pytest.mark.parametrize("way", WAYS)
def test_a_step_that_compiles_each_time_is_found_first(folder: Folder, way: str) -> None:
    target, program = WAYS[way]
    folder.capture(MODEL + program, "--target", target, "--host-clock", "fixed")
    first, *others = advise(folder.profile())
    assert first.rule == "recompilation"
    assert "recompilation" not in [other.rule for other in others]
    text = (folder.path / "program.py").read_text().splitlines()
    assert Path(first.place.file).name == "program.py"
    assert text[first.place.line - 1].endswith("# each time")
    assert ("torch.compile" in first.change) == (way == "native")
