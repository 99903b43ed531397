"""The back end that stands for a whole group: one that it has, so that nothing warns."""

import pytest
import torch.distributed as dist


@pytest.mark.parametrize("backend", [None, "neuron", "gloo", "cpu:gloo,neuron:neuron"])
def test_a_group_ends_without_a_warning(backend, capfd):
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    dist.destroy_process_group()
    assert "Warning" not in capfd.readouterr().err
