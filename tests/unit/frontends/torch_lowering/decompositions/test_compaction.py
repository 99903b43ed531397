import pytest
import torch

from tests.unit.frontends.lowered import lowered

aten = torch.ops.aten
MASKS = [
    torch.tensor([[True, False, True], [False, False, True]]),
    torch.ones(4, 2, dtype=torch.bool),
    torch.zeros(3, dtype=torch.bool),
]


@pytest.mark.parametrize("mask", MASKS)
def test_places_that_are_not_zero_stand_first_and_their_count_follows(mask):
    places, count = lowered(aten.nonzero.default, mask)
    assert torch.equal(places[: int(count)], mask.nonzero())
    assert places.shape == (mask.numel(), mask.dim())


def test_what_is_not_a_number_is_not_zero():
    data = torch.tensor([0.0, torch.nan, -0.0, 1.0])
    places, count = lowered(aten.nonzero.default, data)
    assert places[: int(count)].tolist() == [[1], [3]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_selected_elements_keep_their_order(dtype):
    data, mask = torch.arange(12).reshape(3, 4).to(dtype), torch.tensor([True, False, False, True])
    chosen, count = lowered(aten.masked_select.default, data, mask)
    assert torch.equal(chosen[: int(count)], data.masked_select(mask))


@pytest.mark.parametrize("mask", MASKS)
def test_a_mask_chooses_rows(mask):
    data = torch.randn(*mask.shape, 5)
    (rows,) = lowered(aten.index.Tensor, data, [mask])
    assert torch.equal(rows[: int(mask.sum())], data[mask])


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("rows", [True, False])
def test_values_are_put_where_a_mask_is_set_in_their_order(rows, accumulate):
    mask = MASKS[0]
    data, values = torch.randn(2, 3, 5), torch.randn(int(mask.sum()), 5) if rows else torch.tensor(2.0)
    (found,) = lowered(aten.index_put.default, data, [mask], values, accumulate)
    assert torch.equal(found, torch.index_put(data, [mask], values, accumulate))


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("shape", [(5,), (2, 3, 4)])
def test_one_element_is_put_at_places_without_dimensions(shape, accumulate):
    data, places = torch.randn(shape), [torch.tensor(extent - 1) for extent in shape]
    values = torch.tensor(2.0)
    (found,) = lowered(aten.index_put.default, data, places, values, accumulate)
    assert torch.equal(found, torch.index_put(data, places, values, accumulate))


@pytest.mark.parametrize(
    "values", [torch.randn(2, 4, 5), torch.randn(4, 5), torch.randn(4, 1), torch.tensor(2.0)]
)
def test_values_are_put_where_a_mask_behind_other_dimensions_is_set(values):
    mask = MASKS[0] | torch.tensor([[False], [True]]) & (torch.arange(3) == 0)
    data = torch.randn(2, 2, 3, 5)
    (found,) = lowered(aten.index_put.default, data, [None, mask], values)
    assert torch.equal(found, aten.index_put.default(data, [None, mask], values))


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("is_set", [True, False])
def test_values_are_put_where_a_mask_of_no_dimensions_is_set(is_set, before):
    data, indices = torch.randn(2, 3), [*[None] * before, torch.tensor(is_set)]
    (found,) = lowered(aten.index_put.default, data, indices, torch.tensor(2.0))
    assert torch.equal(found, aten.index_put.default(data, indices, torch.tensor(2.0)))


def test_no_values_are_put_where_a_mask_is_set_nowhere():
    data, mask = torch.randn(2, 5), torch.zeros(2, 5, dtype=torch.bool)
    (found,) = lowered(aten.index_put.default, data, [mask], torch.zeros(0))
    assert torch.equal(found, data)


def test_indices_that_are_no_masks_are_lowered_as_before():
    data, index = torch.randn(4, 3), torch.tensor([3, 1])
    (found,) = lowered(aten.index.Tensor, data, [index])
    assert torch.equal(found, data[index])


@pytest.mark.parametrize("data", [torch.tensor([3, 1, 3, 2, 1, 3]), torch.full((5,), 7), torch.tensor([4])])
def test_different_elements_in_order_with_their_places_and_counts(data):
    expected = torch.unique(data, return_inverse=True, return_counts=True)
    values, inverse, counts = lowered(aten._unique2.default, data, True, True, True)
    length = len(expected[0])
    assert torch.equal(values[:length], expected[0])
    assert torch.equal(inverse, expected[1])
    assert torch.equal(counts[:length], expected[2])


def test_runs_of_equal_elements():
    data = torch.tensor([[1, 1, 2], [2, 1, 1]])
    expected = torch.unique_consecutive(data, return_inverse=True, return_counts=True)
    values, inverse, counts = lowered(aten.unique_consecutive.default, data, True, True)
    assert torch.equal(values[:3], expected[0])
    assert torch.equal(inverse, expected[1])
    assert torch.equal(counts[:3], expected[2])


@pytest.mark.parametrize("weights", [None, torch.tensor([0.5, 1, 2, 4]), torch.tensor([1, 2, 3, 4])])
def test_numbers_are_counted_as_far_as_is_said(weights):
    numbers = torch.tensor([3, 0, 3, 1])
    (found,) = lowered(aten.bincount.default, numbers, weights, 6)
    torch.testing.assert_close(found, torch.bincount(numbers, weights, 6), check_dtype=weights is None)
