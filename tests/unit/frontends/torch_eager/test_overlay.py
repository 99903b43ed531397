"""What was written to memory is found again by whoever reads it in another shape."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings, strategies as st

from neuron_tools.frontends.torch_eager.overlay import Region, find_cut, see
from neuron_tools.frontends.torch_lowering.builder import GraphBuilder
from neuron_tools.frontends.torch_lowering.fake import fake_tensor
from neuron_tools.frontends.torch_lowering.layout import StoredTensor


def region(tensor: torch.Tensor) -> Region:
    """Where a tensor lies in its storage."""
    return Region(tensor.storage_offset(), StoredTensor.of(tensor))


def seen(whole: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor | None:
    """`wanted`, computed from the values of `whole` by the views that `see` finds."""
    builder = GraphBuilder()
    parameter = builder.parameter(fake_tensor(whole.shape, None, whole.dtype))
    node = see(builder, parameter, region(whole), region(wanted), row=0)
    if node is None:
        return None
    values = {parameter: whole}
    for call in builder.graph.nodes:
        if call.op == "call_function":
            args = torch.fx.node.map_arg(call.args, values.__getitem__)
            kwargs = torch.fx.node.map_arg(call.kwargs, values.__getitem__)
            values[call] = call.target(*args, **kwargs)
    return values[node]


X = torch.arange(2 * 6 * 4.0).reshape(2, 6, 4)

VIEWS = {
    "itself": lambda x: x,
    "flat": lambda x: x.reshape(-1),
    "split": lambda x: x.view(2, 3, 2, 4),
    "transposed": lambda x: x.transpose(1, 2),
    "heads": lambda x: x.view(2, 6, 2, 2).permute(0, 2, 1, 3),
    "broadcast": lambda x: x.unsqueeze(1).expand(2, 5, 6, 4),
    "chunk": lambda x: x.chunk(2, dim=-1)[1],
    "narrow": lambda x: x[:, 2:5],
    "select": lambda x: x[:, 3],
    "select last": lambda x: x[..., 2],
    "block": lambda x: x[1, 1:3, 1:4],
    "turned chunk": lambda x: x[:, 2:4].transpose(0, 2),
    "one element": lambda x: x[1, 5, 3],
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_what_was_written(view: str) -> None:
    wanted = VIEWS[view](X)
    found = seen(X, wanted)
    assert found is not None
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("view", ["itself", "flat", "heads", "broadcast", "chunk"])
def test_a_view_of_what_was_written_in_another_order(view: str) -> None:
    written = X.transpose(0, 2)
    wanted = VIEWS[view](X)
    found = seen(written, wanted)
    assert found is not None
    assert torch.equal(found, wanted)


@pytest.mark.parametrize(
    "wanted",
    [X[:, ::2], X.view(torch.int32), X.as_strided((2, 3), (1, 1)), X.as_strided((5, 9), (9, 1), 1)],
    ids=["steps", "other type", "overlapping", "beyond a rectangle"],
)
def test_no_view_leads_there(wanted: torch.Tensor) -> None:
    found = seen(X, wanted)
    assert found is None or torch.equal(found, wanted)


def test_what_is_wider_than_what_was_written_is_not_seen() -> None:
    assert find_cut(region(X[0]), region(X)) is None
    assert find_cut(region(X[1]), region(X[0])) is None
    assert find_cut(region(X[:, 1:3]), region(X[:, 1:3])) is None


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_whatever_is_seen_is_what_memory_holds(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    whole = torch.arange(float(torch.Size(sizes).numel())).reshape(sizes)
    whole = whole.permute(data.draw(st.permutations(range(len(sizes)))))
    wanted = whole
    for dimension, extent in enumerate(wanted.shape):
        start = data.draw(st.integers(0, extent - 1))
        wanted = wanted.narrow(dimension, start, data.draw(st.integers(1, extent - start)))
    wanted = wanted.permute(data.draw(st.permutations(range(len(sizes)))))
    found = seen(whole, wanted)
    assert found is not None
    assert torch.equal(found, wanted)
