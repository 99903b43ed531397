"""A traced model that was saved for one chip and is loaded on another is refused in a sentence."""

from __future__ import annotations

import pytest

from tests.integration.capture.programs import Folder

SAVE = """
import torch, torch_neuron{x}
model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32)).eval()
features = torch.randn(4, 32)
torch.jit.save(torch_neuron{x}.trace(model, features), "model.pt")
"""
LOAD = """
import torch, torch_neuron{x}
torch.jit.load("model.pt")(torch.randn(4, 32))
"""


@pytest.mark.parametrize(
    ("made_for", "version", "run_on"),
    [pytest.param("inf1", 1, "inf2", marks=pytest.mark.slow), ("inf2", 2, "inf1")],
)
def test_a_saved_model_is_refused_on_another_generation(
    folder: Folder, made_for: str, version: int, run_on: str
) -> None:
    family = {"inf1": "", "inf2": "x"}
    folder.capture(SAVE.format(x=family[made_for]), "--target", made_for)
    again = ("--target", made_for)
    folder.capture(LOAD.format(x=family[made_for]), *again, output="same.nprof")
    answer = folder.capture(
        LOAD.format(x=family[run_on]), "--target", run_on, output="other.nprof", check=False
    )
    assert answer.returncode == 1
    refusal = f"The model was compiled for NeuronCore-v{version} ({made_for}) and cannot run on NeuronCore-v"
    assert refusal in answer.stderr + answer.stdout
