import pytest
import torch

from neuron_tools.frontends.torch_lowering.decompositions import fallback_table
from neuron_tools.frontends.torch_lowering.fake import fake_tensor
from neuron_tools.frontends.torch_lowering.tracing import trace
from tests.unit.frontends.lowered import lowered

aten = torch.ops.aten


@pytest.mark.parametrize(("dim", "largest"), [(-1, True), (0, True), (-1, False)])
def test_the_largest_in_any_order_are_given_in_theirs(dim, largest):
    data = torch.randn(6, 9)
    values, indices = lowered(aten.topk.default, data, 3, dim, largest, False)
    assert torch.equal(values, data.topk(3, dim, largest, True)[0])
    assert torch.equal(data.gather(dim, indices), values)


@pytest.mark.parametrize(("dim", "largest"), [(-1, True), (0, False)])
def test_a_refused_top_in_order_is_the_head_of_a_sort_and_not_itself_again(dim, largest):
    data = torch.randn(6, 9)
    refused = fallback_table()[aten.topk.default]
    graph = trace(
        lambda tensor: refused(tensor, 3, dim, largest), [fake_tensor((6, 9), None, data.dtype)], {}
    )
    assert aten.topk.default not in {node.target for node in graph.nodes}
    values, indices = refused(data, 3, dim, largest)
    assert torch.equal(values, data.topk(3, dim, largest)[0])
    assert torch.equal(data.gather(dim, indices), values)


@pytest.mark.parametrize(
    ("scale", "successes", "overflow"),
    [(8.0, 1, 0.0), (8.0, 2, 0.0), (8.0, 2, 1.0), (8.0, 0, 1.0), (3e38, 2, 0.0)],
)
def test_a_loss_scale_grows_after_steps_without_overflow_and_shrinks_at_one(scale, successes, overflow):
    before = [torch.tensor(scale), torch.tensor(successes, dtype=torch.int32), torch.tensor(overflow)]
    expected = aten._amp_update_scale.default(*before, 2.0, 0.5, 3)
    assert lowered(aten._amp_update_scale.default, *before, 2.0, 0.5, 3) == list(expected)
