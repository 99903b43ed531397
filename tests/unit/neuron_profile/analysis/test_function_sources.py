"""What the text of a function says about its lines."""

from __future__ import annotations

import pytest

from neuron_profile.analysis.function_sources import function_lines

MODULE = """
import torch
from torch import nn

LENGTH = 8
changing = 1
changing = 2

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.layer = nn.Linear(width, width)
        self.seen = 0

    def forward(self, x):
        {line}
        return {result}
"""


def told(line: str, result: str = "y", after: str = "") -> list[tuple[str, bool, bool]]:
    """Name, whether it is the same in every call, and whether nobody reads it, of each line that is told."""
    source = MODULE.format(line=line, result=result) + after
    return [(each.name, each.invariant, each.unused) for each in function_lines(source.splitlines()).values()]


@pytest.mark.parametrize(
    "line",
    [
        "y = torch.ones(LENGTH, LENGTH).triu(1).to(x.device, x.dtype)",
        "y = torch.arange(x.shape[1], device=x.device).float()",
        "y = self.layer.weight.t().contiguous()",
        "y = torch.zeros(self.width)",
    ],
)
def test_what_reads_shapes_and_constants_gives_the_same_in_every_call(line: str) -> None:
    assert told(line) == [("y", True, False)]


@pytest.mark.parametrize(
    "line",
    [
        "y = torch.relu(x)",
        "y = torch.zeros(changing)",
        "y = torch.rand(LENGTH)",
        "y = torch.zeros(self.seen); self.seen += 1",
        "y = self.layer(x)",
    ],
)
def test_what_reads_values_or_what_changes_is_not_told(line: str) -> None:
    assert told(line) == []


def test_weights_that_are_trained_change() -> None:
    line = "y = self.layer.weight.t().contiguous()"
    assert told(line, after="\nloss.backward()\noptimizer.step()\n") == []
    assert told("y = torch.zeros(self.width)", after="\noptimizer.step()\n") == [("y", True, False)]


def test_a_result_that_nobody_reads() -> None:
    assert told("aux = self.layer(x)", "x") == [("aux", False, True)]


@pytest.mark.parametrize(("targets", "is_told"), [("x, _", True), ("x, more", True), ("x, x2", False)])
def test_a_result_that_every_caller_drops(targets: str, is_told: bool) -> None:
    calls = f"\nmodel = Block(4).to('neuron')\n{targets} = model(x)\nprint(x2)\n"
    found = told("aux = self.layer(x)", "x, aux", after=calls)
    assert found == ([("aux", False, True)] if is_told else [])


def test_a_result_that_is_handed_on_whole_is_read() -> None:
    calls = "\nmodel = Block(4)\nx, _ = model(x)\nkeep(model(x))\n"
    assert told("aux = self.layer(x)", "x, aux", after=calls) == []
