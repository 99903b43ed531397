"""`flex_attention` on the device: masks, scores and captured tensors, eager and compiled, as written out."""

from __future__ import annotations

import pytest
import torch
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

from neuron_tools.frontends.torch_compile import backend

DOCUMENTS = torch.tensor([0] * 20 + [1] * 44)
ROWS, COLUMNS = torch.arange(64)[:, None], torch.arange(64)[None]


@pytest.fixture
def graphs(monkeypatch):
    """The names of the operators of each graph that is compiled."""
    found: list[list[str]] = []

    class Noted(backend.CompiledGraph):
        def __init__(self, gm, *arguments):
            found.append([str(node.target) for node in gm.graph.nodes if node.op == "call_function"])
            super().__init__(gm, *arguments)

    monkeypatch.setattr(backend, "CompiledGraph", Noted)
    return found


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


def odd_rows_alone(b, h, i, j):
    return (i % 2 == 1) & (i >= j)


def masked(attention, tensors, aux):
    """Output, gradients, and what else is asked for, of attention with a mask alone."""
    leaves = [tensor.to("neuron").requires_grad_() for tensor in tensors]
    mask = create_block_mask(odd_rows_alone, None, None, 64, 64, device="neuron")
    grouped = tensors[0].shape[1] != tensors[1].shape[1]
    result = attention(*leaves, block_mask=mask, scale=0.3, enable_gqa=grouped, return_aux=aux)
    output, lse = (result[0], [result[1].lse.detach()]) if aux else (result, [])
    output.square().sum().backward()
    return [output.detach(), *(leaf.grad for leaf in leaves), *lse]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("heads", [2, 1])
@pytest.mark.parametrize("aux", [None, AuxRequest(lse=True)], ids=["plain", "lse"])
def test_a_mask_alone_is_the_attention_operator_with_rows_that_see_nothing(graphs, heads, aux):
    torch._dynamo.reset()
    found = masked(torch.compile(flex_attention, backend="neuron"), operands(heads), aux)
    for got, wanted in zip(found, masked(flex_attention, operands(heads), aux), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)
    used = [sum("_scaled_dot_product_fused_attention" in name for name in names) for names in graphs]
    assert used == ([1, 1] if aux is None else [1, 0])  # the operator has no gradient of the sums


def test_a_function_of_the_scores_is_products_and_a_softmax(graphs):
    torch._dynamo.reset()
    tensors = [tensor.to("neuron") for tensor in operands()]
    torch.compile(flex_attention, backend="neuron")(*tensors, score_mod=lambda s, b, h, i, j: s.tanh())
    (names,) = graphs
    assert sum("bmm" in name for name in names) == 2
    assert not any("flex" in name for name in names)
