"""Products of joined batch axes that are kept apart for a partitioner."""

from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from neuron_tools.frontends.torch_lowering.batched_products import keep_batch_axes

_aten = torch.ops.aten
LEFT, RIGHT = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 5, 6)


def kept(function, *given):
    traced = make_fx(function, tracing_mode="fake")(*given)
    keep_batch_axes(traced.graph)
    traced.recompile()
    assert torch.allclose(traced(*given), function(*given), atol=1e-5)
    return [node.target for node in traced.graph.nodes if node.op == "call_function"]


def test_a_product_of_batches_and_heads_has_both():
    assert kept(torch.matmul, LEFT, RIGHT) == [_aten.matmul.default]


@pytest.mark.parametrize(
    "function",
    [
        lambda left, right: torch.matmul(left, right).reshape(6, 4, 6),
        lambda left, right: torch.bmm(left.reshape(6, 4, 5), right.reshape(6, 5, 6)).reshape(3, 2, 4, 6),
        lambda left, right: torch.bmm(left.reshape(12, 2, 5), right.repeat(1, 2, 1, 1).reshape(12, 5, 6)),
    ],
    ids=["joined results", "batches of another order", "rows among batches"],
)
def test_other_products_stay_as_they_are_or_right(function):
    kept(function, LEFT, RIGHT)


def test_one_batch_axis_stays_a_bmm():
    assert _aten.bmm.default in kept(torch.matmul, LEFT[0], RIGHT[0])
