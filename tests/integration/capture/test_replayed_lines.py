"""Lines of a graph of device work that is captured once and replayed."""

from __future__ import annotations

import pytest

from tests.integration.capture.programs import Folder, rows

PROGRAM = """\
import torch
weight = torch.ones(64, 64, device="neuron", requires_grad=True)
inputs = torch.ones(8, 64, device="neuron")
graph = torch.neuron.NeuronGraph()
with torch.neuron.graph(graph):
    product = inputs @ weight
    loss = product.sinh().sum()
    loss.backward()
graph.replay()
torch.neuron.synchronize()
"""
QUERY = """
SELECT framework_name, list_sort(array_agg(DISTINCT source_line)) FROM HloInstruction
WHERE framework_name IN ('aten::mm', 'aten::sinh') GROUP BY 1 ORDER BY 1
"""


def test_each_operation_stands_where_it_was_captured(folder: Folder) -> None:
    """Of mm there are two: the other is the gradient of the first."""
    folder.capture(PROGRAM, "--host-clock", "fixed")
    product, sinh = (
        number for number, text in enumerate(PROGRAM.splitlines(), 1) if "@" in text or "sinh" in text
    )
    assert rows(folder.profile(), QUERY) == [
        ("aten::mm", [product]),
        ("aten::sinh", [sinh]),
    ]


def test_what_a_backward_pass_does_while_it_is_captured_takes_no_time(folder: Folder) -> None:
    folder.capture(PROGRAM.replace("graph.replay()", ""), "--host-clock", "fixed")
    assert rows(folder.profile(), QUERY) == []


HOOKS = """\
import torch
from torch.utils.checkpoint import checkpoint
weight = torch.ones(64, 64, device="neuron", requires_grad=True)
weight.grad = torch.zeros_like(weight)
inputs = torch.ones(8, 64, device="neuron", requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
def update(parameter):
    optimizer.step()  # UPDATE
weight.register_post_accumulate_grad_hook(update)
def layer(value):
    return value @ weight  # LAYER
graph = torch.neuron.NeuronGraph()
with torch.neuron.graph(graph):
    made = checkpoint(layer, inputs, use_reentrant=True)
    made.sum().backward()
graph.replay()
torch.neuron.synchronize()
"""


@pytest.mark.slow
def test_hooks_and_what_is_computed_again_stand_at_their_own_lines(folder: Folder) -> None:
    """The hook's copy of what the capture will put back is no part of the program."""
    folder.capture(HOOKS, "--host-clock", "fixed")
    update, layer = (
        number for number, text in enumerate(HOOKS.splitlines(), 1) if text.endswith(("# UPDATE", "# LAYER"))
    )
    places = """
    SELECT DISTINCT framework_name, source_line, source_file LIKE '%program.py' FROM HloInstruction
    WHERE framework_name IN ('aten::mm', 'aten::_foreach_add') OR source_file NOT LIKE '%program.py'
    ORDER BY 1
    """
    assert rows(folder.profile(), places) == [("aten::_foreach_add", update, True), ("aten::mm", layer, True)]
