"""Collectives are operations of a step's graph, whoever asks for them: `torch_xla` or `torch.distributed`."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from neuron_tools.frontends.torch_xla import collectives, sync

WAYS = {
    "all_reduce": lambda tensor: collectives.all_reduce(tensor, "sum"),
    "all_gather": collectives.all_gather,
    "reduce_scatter": lambda tensor: collectives.reduce_scatter(tensor, "sum"),
    "all_to_all": lambda tensor: collectives.all_to_all(tensor, 0, 1),
    "collective_broadcast": lambda tensor: collectives.broadcast(tensor, 1),
}
PLAIN_WAYS = {
    "all_reduce": lambda tensor: dist.all_reduce(tensor),
    "all_gather": lambda tensor: dist.all_gather([torch.empty_like(tensor) for _ in range(2)], tensor),
    "collective_broadcast": lambda tensor: dist.broadcast(tensor, 1),
    "reduce_scatter": lambda tensor: dist.reduce_scatter(torch.empty_like(tensor), [tensor, tensor]),
}


@pytest.fixture
def two_ranks():
    """A job of which this process is rank 0 and the other does not exist."""
    dist.init_process_group("cpu:fake,neuron:fake,xla:fake", store=FakeStore(), rank=0, world_size=2)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("opcode", WAYS)
def test_a_collective_is_one_operation_of_the_graph(opcode, provider, xla, two_ranks):
    tensor = torch.ones(4, 6).to(xla) + 1
    kept = WAYS[opcode](tensor) * 2
    assert not provider.executions
    sync()
    assert len(provider.executions) == 1
    found = [operation for operation in provider.last.operations if operation.opcode == opcode]
    assert [operation.attributes["replica_groups"] for operation in found] == [(0, 1)]
    assert kept.device.type == "xla"


@pytest.mark.parametrize("opcode", PLAIN_WAYS)
def test_those_of_torch_distributed_are_too(opcode, provider, xla, two_ranks):
    tensor = torch.ones(4, 6).to(xla) + 1
    PLAIN_WAYS[opcode](tensor)
    assert not provider.executions
    kept = tensor * 2
    sync()
    assert kept.shape == (4, 6)
    assert len(provider.executions) == 1


def test_an_asynchronous_one_is_over_when_it_is_waited_for(provider, xla, two_ranks):
    tensor = torch.ones(4).to(xla)
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    assert work.is_completed()
    assert not provider.executions


def test_one_that_no_graph_has_ends_the_graph(provider, xla, two_ranks):
    tensor = torch.ones(4).to(xla) + 1
    dist.barrier()
    dist.reduce(tensor, 0)
    assert len(provider.executions) == 1
