"""`flex_attention` on the device: masks, scores and captured tensors, eager and compiled, as written out."""

from __future__ import annotations

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from neuron_tools.frontends.torch_compile import backend

DOCUMENTS = torch.tensor([0] * 20 + [1] * 44)
ROWS, COLUMNS = torch.arange(64)[:, None], torch.arange(64)[None]


def operands(heads: int = 2) -> list[torch.Tensor]:
    torch.manual_seed(0)
    shapes = ((1, 2, 64, 16), (1, heads, 64, 16), (1, heads, 64, 16))
    return [torch.randn(shape) for shape in shapes]


def written_out(query, key, value, slope):
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    scores = query @ key.transpose(-1, -2) / 4 * slope[None, :, None, None]
    hidden = (ROWS < COLUMNS) | (DOCUMENTS[:, None] != DOCUMENTS[None])
    return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ value


def on_device(attention, query, key, value, slope):
    documents = DOCUMENTS.to("neuron")
    mask = create_block_mask(
        lambda b, h, i, j: (i >= j) & (documents[i] == documents[j]), None, None, 64, 64, device="neuron"
    )
    grouped = query.shape[1] != key.shape[1]
    return attention(
        query, key, value, score_mod=lambda score, b, h, i, j: score * slope[h], block_mask=mask,
        enable_gqa=grouped,
    )  # fmt: skip


def with_gradients(function, tensors):
    leaves = [tensor.detach().requires_grad_() for tensor in tensors]
    result = function(*leaves)
    result.square().sum().backward()
    return [result.detach(), *(leaf.grad for leaf in leaves)]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("heads", [2, 1])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_values_and_gradients_are_those_of_attention_written_out(compiled, heads):
    tensors = [*operands(heads), torch.tensor([0.5, 2.0])]
    attention = torch.compile(flex_attention, backend="neuron") if compiled else flex_attention
    moved = [tensor.to("neuron") for tensor in tensors]
    found = with_gradients(lambda *leaves: on_device(attention, *leaves), moved)
    for got, wanted in zip(found, with_gradients(written_out, tensors), strict=True):
        torch.testing.assert_close(got.cpu(), wanted, rtol=1e-4, atol=1e-4)


def test_autocast_computes_in_its_type():
    tensors = [tensor.to("neuron").requires_grad_() for tensor in operands()]
    with torch.autocast("neuron", dtype=torch.bfloat16):
        result = torch.compile(flex_attention, backend="neuron")(*tensors)
    result.float().sum().backward()
    assert result.dtype == torch.bfloat16
    assert tensors[0].grad.dtype == torch.float32


def test_a_compiled_graph_consists_of_operators_that_the_device_has(monkeypatch):
    names: list[str] = []

    class Noted(backend.CompiledGraph):
        def __init__(self, gm, *arguments):
            names.extend(str(node.target) for node in gm.graph.nodes if node.op == "call_function")
            super().__init__(gm, *arguments)

    monkeypatch.setattr(backend, "CompiledGraph", Noted)
    torch._dynamo.reset()
    torch.compile(flex_attention, backend="neuron")(*(tensor.to("neuron") for tensor in operands()))
    assert any("bmm" in name for name in names)
    assert not any("flex" in name for name in names)
