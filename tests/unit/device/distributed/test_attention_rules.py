"""DTensor splits the device's attention by batch and by head, on one process with a pretended group."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.testing._internal.distributed.fake_pg import FakeStore


@pytest.fixture
def mesh():
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield init_device_mesh("neuron", (2,))
    dist.destroy_process_group()


@pytest.mark.parametrize("placement", [Shard(0), Shard(1), Replicate()])
def test_outputs_and_gradients_keep_the_split(mesh, placement):
    parts = [torch.randn(2, 2, 8, 4, device="neuron") for _ in range(3)]
    given = [DTensor.from_local(each, mesh, [placement]).requires_grad_() for each in parts]
    out = torch.nn.functional.scaled_dot_product_attention(*given, is_causal=True)
    assert out.placements == (placement,)
    out.sum().backward()
    assert {each.grad.placements for each in given} == {(placement,)}
    alone = torch.nn.functional.scaled_dot_product_attention(*(each.cpu() for each in parts), is_causal=True)
    torch.testing.assert_close(out.to_local().cpu(), alone)
