"""Masks that follow from shapes: attention does without those that hide the future, or nothing."""

from __future__ import annotations

import pytest
import torch
from torch import fx
from torch.nn.functional import scaled_dot_product_attention

from neuron_tools.frontends.torch_compile import backend, known_masks, partition

ROWS = 48


@pytest.fixture
def attention_nodes(monkeypatch):
    """(name, mask, is causal) of attention and its gradient in each joint graph that is cut in two."""
    found: list[tuple[str, bool, bool]] = []

    def fold(joint: fx.GraphModule) -> None:
        known_masks.fold_known_masks(joint)
        for node in joint.graph.nodes:
            if node.target in known_masks._PLACES:
                mask = known_masks._argument(node, "attn_bias", 0)
                is_causal = bool(known_masks._argument(node, "is_causal", 1))
                found.append((node.target._opname.rsplit("_", 1)[-1], mask is not None, is_causal))

    monkeypatch.setattr(partition, "fold_known_masks", fold)
    return found


def packed(device):
    """The mask of transformers 5 for one sequence a row, as it makes it while Dynamo traces."""
    places = torch.arange(ROWS, device=device)
    position = places[None].expand(2, -1)
    sequence = (torch.diff(position, prepend=position[:, :1] - 1) != 1).cumsum(-1)
    batch = torch.arange(2, device=device)[:, None, None, None]
    row, column = places[None, None, :, None], places[None, None, None]
    return (column <= row) & (sequence[batch, row] == sequence[batch, column])


def hides_nothing(device):
    places = torch.arange(ROWS, device=device)
    return (places[:, None] >= 0) & (places[None] >= 0)


def window(device):
    places = torch.arange(ROWS, device=device)
    return (places[:, None] >= places[None]) & (places[:, None] - places[None] < 8)


def added(device):
    places = torch.arange(ROWS, device=device)
    hidden = places[:, None] < places[None]
    return torch.zeros(ROWS, ROWS, device=device).masked_fill(hidden, torch.finfo(torch.float32).min)


def slopes(device):
    return torch.arange(ROWS, device=device, dtype=torch.float32)[None].expand(ROWS, ROWS) / ROWS


def with_gradients(make_mask, device):
    torch.manual_seed(0)
    leaves = [torch.randn(2, 2, ROWS, 16).to(device).requires_grad_() for _ in range(3)]

    def attend(query, key, value):
        return scaled_dot_product_attention(query, key, value, make_mask(query.device))

    compiled = torch.compile(attend, backend="neuron", fullgraph=True) if device == "neuron" else attend
    result = compiled(*leaves)
    result.square().sum().backward()
    return [each.detach().cpu() for each in (result, *(leaf.grad for leaf in leaves))]


@pytest.mark.parametrize(
    ("make_mask", "has_mask", "is_causal"),
    [
        (packed, False, True),
        (added, False, True),
        (hides_nothing, False, False),
        (window, True, False),
        (slopes, True, False),
    ],
)
def test_attention_does_without_known_masks_and_computes_the_same(
    attention_nodes, make_mask, has_mask, is_causal
):
    torch._dynamo.reset()
    found = with_gradients(make_mask, "neuron")
    assert [node[1:] for node in attention_nodes] == [(has_mask, is_causal)] * 2
    for actual, expected in zip(found, with_gradients(make_mask, "cpu"), strict=True):
        torch.testing.assert_close(actual, expected)


def test_masks_that_somebody_gives_stay(attention_nodes):
    torch._dynamo.reset()
    mask = torch.ones(ROWS, ROWS, dtype=torch.bool).tril().to("neuron")
    leaves = [torch.randn(2, 2, ROWS, 16).to("neuron").requires_grad_() for _ in range(3)]
    torch.compile(scaled_dot_product_attention, backend="neuron")(*leaves, mask).sum().backward()
    assert attention_nodes == [("overrideable", True, False), ("backward", True, False)]


def test_masks_that_are_too_large_to_compute_here_stay(attention_nodes, monkeypatch):
    torch._dynamo.reset()
    monkeypatch.setattr(known_masks, "MOST_ELEMENTS", ROWS)
    with_gradients(packed, "neuron")
    assert [node[1:] for node in attention_nodes] == [(True, False)] * 2


def test_inference_does_without_them_too(monkeypatch):
    torch._dynamo.reset()
    seen: list[bool] = []

    class Noted(backend.CompiledGraph):
        def __init__(self, gm, *arguments):
            seen.extend(
                known_masks._argument(node, "attn_bias", 0) is None
                for node in gm.graph.nodes
                if node.target in known_masks._PLACES
            )
            super().__init__(gm, *arguments)

    monkeypatch.setattr(backend, "CompiledGraph", Noted)
    operands = [torch.randn(2, 2, ROWS, 16) for _ in range(3)]

    def attend(query, key, value):
        return scaled_dot_product_attention(query, key, value, packed(query.device))

    with torch.no_grad():
        result = torch.compile(attend, backend="neuron")(*(each.to("neuron") for each in operands))
    torch.testing.assert_close(result.cpu(), attend(*operands))
    assert seen == [True]
