"""The back end that stands for a whole group: one that it has, so that nothing warns."""

import pytest
import torch
import torch.distributed as dist


@pytest.mark.parametrize("backend", [None, "neuron", "gloo", "cpu:gloo,neuron:neuron"])
def test_a_group_ends_without_a_warning(backend, capfd):
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    dist.destroy_process_group()
    assert "Warning" not in capfd.readouterr().err


@pytest.mark.parametrize(("backend", "is_taken"), [("neuron", False), ("cpu:gloo,neuron:neuron", True)])
def test_a_group_of_the_device_alone_takes_no_tensors_of_the_cpu(backend, is_taken):
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    try:
        dist.all_reduce(torch.ones(2, device="neuron"))
        if is_taken:
            dist.all_reduce(torch.ones(2))
        else:
            with pytest.raises(RuntimeError, match="device type cpu"):
                dist.all_reduce(torch.ones(2))
        objects = [None]
        dist.all_gather_object(objects, "own")
    finally:
        dist.destroy_process_group()
    assert objects == ["own"]
