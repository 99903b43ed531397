import pytest
import torch

from tests.unit.frontends.lowered import lowered

aten = torch.ops.aten


@pytest.mark.parametrize(("dim", "largest"), [(-1, True), (0, True), (-1, False)])
def test_the_largest_in_any_order_are_given_in_theirs(dim, largest):
    data = torch.randn(6, 9)
    values, indices = lowered(aten.topk.default, data, 3, dim, largest, False)
    assert torch.equal(values, data.topk(3, dim, largest, True)[0])
    assert torch.equal(data.gather(dim, indices), values)
