"""Operations of a traced model keep their lines and modules."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from neuron_tools.frontends.torch_compile.provenance import ModuleRoot, framework_operation
from neuron_tools.frontends.torch_trace.exported import export_model
from neuron_tools.records.program import FrameworkOperation


class Squashed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return torch.tanh(value)  # line: tanh


class Inner(nn.Module):
    def __init__(self, context):
        super().__init__()
        self._context = context

    def forward(self, value):
        with self._context():
            return Squashed.apply(value)  # line: apply


class Model(nn.Module):
    def __init__(self, context):
        super().__init__()
        self.inner = Inner(context)

    def forward(self, value):
        return torch.relu(self.inner(value)).sum()


@pytest.mark.parametrize(
    "context",
    [lambda: torch.autocast("cpu", enabled=False), lambda: torch.autocast("cuda", enabled=False)],
    ids=["cpu", "cuda"],
)
def test_what_is_in_an_autocast_block_has_its_lines(context: type) -> None:
    found = operations(Model(context))["aten::tanh"]
    assert [frame.line for frame in found.stack][:2] == [line_of("tanh"), line_of("apply")]
    assert found.module_class == "Inner"


def test_what_is_in_a_block_with_gradients_has_its_lines() -> None:
    found = operations(Model(torch.enable_grad))["aten::tanh"]
    assert [frame.line for frame in found.stack][:2] == [line_of("tanh"), line_of("apply")]


def operations(model: nn.Module) -> dict[str, FrameworkOperation]:
    graph = export_model(model, [torch.ones(4)]).graph_module.graph
    calls = [node for node in graph.nodes if node.op == "call_function"]
    found = [framework_operation(node, ModuleRoot(), backward=False) for node in calls]
    return {operation.name: operation for operation in found}


def line_of(mark: str) -> int:
    """The line of this file that ends with a mark."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith(f"# line: {mark}"))
