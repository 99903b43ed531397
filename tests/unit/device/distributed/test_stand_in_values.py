"""Values of collectives whose other ranks do not run: each of them is taken to bring what this one does."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

from neuron_tools.device.distributed.stand_in_values import StandInValues, values_of

SUM = SimpleNamespace(reduceOp=dist.ReduceOp.SUM, rootRank=0)
MEAN = SimpleNamespace(reduceOp=dist.ReduceOp.AVG, rootRank=0)


@pytest.fixture
def values():
    made = values_of(dist.HashStore(), 1, 4, timedelta(seconds=5), [1])
    assert isinstance(made, StandInValues)
    return made


def test_a_sum_is_of_equal_parts_and_their_mean_is_one_of_them(values):
    tensor = torch.tensor([1.0, 2.0])
    values.all_reduce([tensor], SUM)
    assert tensor.tolist() == [4.0, 8.0]
    values.all_reduce([tensor], MEAN)
    assert tensor.tolist() == [4.0, 8.0]


def test_what_is_gathered_is_the_same_four_times(values):
    whole = torch.zeros(8)
    values.all_gather_flat(whole, torch.tensor([1.0, 2.0]), None)
    assert whole.tolist() == [1.0, 2.0] * 4
    parts = [torch.zeros(1) for _ in range(4)]
    values.all_gather([parts], [torch.ones(1)], None)
    assert torch.cat(parts).tolist() == [1.0] * 4


def test_a_reduced_part_is_the_one_of_this_rank(values):
    part = torch.zeros(2)
    values.reduce_scatter_flat(part, torch.arange(8.0), SUM)
    assert part.tolist() == [8.0, 12.0]


def test_rows_for_all_come_back(values):
    taken = torch.zeros(3)
    values.all_to_all_flat(taken, torch.arange(4.0), ([], []), None)
    assert taken.tolist() == [0.0, 1.0, 2.0]
