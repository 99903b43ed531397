"""ZeRO-1 and FSDP of `torch_xla` train like one process that has all data and all parameters."""

import subprocess
import sys

import pytest
import torch

from neuron_tools import compat

PROGRAM = """
from functools import partial

import torch
import torch.distributed as dist
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_multiprocessing as xmp
from torch import nn
from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel, consolidate_sharded_state_dicts
from torch_xla.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch_xla.distributed.zero_redundancy_optimizer import ZeroRedundancyOptimizer


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(6, 7), nn.Linear(7, 6), nn.LayerNorm(6)

    def forward(self, x):
        return self.norm(x + self.down(torch.relu(self.up(x))))


def model():
    torch.manual_seed(0)
    return nn.Sequential(Block(), Block(), nn.Linear(6, 3))


def train(model, optimizer, device, clip=lambda: None, rank=0, ranks=1):
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        x, y = torch.randn(8, 6, generator=generator), torch.randint(0, 3, (8,), generator=generator)
        x, y = (part.chunk(ranks)[rank].to(device) for part in (x, y))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        clip()
        optimizer.step()
        if device != "cpu":
            xm.mark_step()


def alone():
    whole = model()
    clip = partial(nn.utils.clip_grad_norm_, list(whole.parameters()), 0.5)  # each step asks for them
    train(whole, torch.optim.Adam(whole.parameters(), lr=0.01), "cpu", clip)
    return whole.state_dict()


def largest_difference(state, expected):
    assert list(state) == list(expected)
    return max((state[name].cpu() - value).abs().max().item() for name, value in expected.items())


def zero(expected, **options):
    device = xm.xla_device()
    whole = model().to(device)
    optimizer = ZeroRedundancyOptimizer(
        whole.parameters(), torch.optim.Adam, lr=0.01, max_norm=0.5, save_master_weights=True, **options
    )
    train(whole, optimizer, device, rank=xm.get_ordinal(), ranks=2)
    state = optimizer.state_dict()
    parts = zip(state["base_state"].values(), whole.parameters())
    assert all(len(part["exp_avg"]) == -(-len(parameter) // 2) for part, parameter in parts)
    optimizer.load_state_dict(state)
    return largest_difference(whole.state_dict(), expected)


def fsdp(expected, **options):
    sharded = XlaFullyShardedDataParallel(model(), **options)
    optimizer = torch.optim.Adam(sharded.parameters(), lr=0.01)
    clip = partial(sharded.clip_grad_norm_, 0.5)
    train(sharded, optimizer, xm.xla_device(), clip, rank=xm.get_ordinal(), ranks=2)
    states = [None, None]
    dist.all_gather_object(states, xm.to_host(sharded.state_dict()))
    whole = consolidate_sharded_state_dicts(states, sharded.get_shard_metadata())
    return largest_difference({name: whole[name] for name in expected}, expected)


def run(index, folder):
    expected = alone()
    each_block = partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})
    with open(f"{folder}/{index}", "w") as file:
        print(
            zero(expected),
            zero(expected, bucket_cap_mb_all_gather=1, bucket_cap_mb_reduce_scatter=1),
            zero(expected, use_grad_acc_hook=True),
            fsdp(expected),
            fsdp(expected, reshard_after_forward=False),
            fsdp(expected, auto_wrap_policy=each_block),
            file=file,
        )


if __name__ == "__main__":
    xmp.spawn(run, args=("FOLDER",), nprocs=2)
"""


@pytest.mark.slow
def test_two_ranks_train_like_one_process(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("FOLDER", str(tmp_path)))
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    for rank in "01":
        assert all(float(number) < 1e-6 for number in (tmp_path / rank).read_text().split())


@pytest.fixture(scope="module")
def xm():
    uninstall = compat.install()
    import torch_xla.core.xla_model as model

    yield model
    uninstall()


def test_buckets_gather_and_scatter_like_single_operations(xm):
    tensors = [torch.arange(6.0).reshape(2, 3).to(xm.xla_device()), torch.ones(4).to(xm.xla_device())]
    gathered = xm.all_gather_bucketized(tensors)
    scattered = xm.reduce_scatter_bucketized(xm.REDUCE_SUM, tensors, 0.5, 0, 1)
    assert [tensor.tolist() for tensor in gathered] == [tensor.tolist() for tensor in tensors]
    assert [tensor.tolist() for tensor in scattered] == [(tensor * 0.5).tolist() for tensor in tensors]


def test_a_wrapped_module_without_other_ranks_computes_as_before(xm):
    from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel

    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
    shown, expected = repr(plain), plain(torch.ones(1, 3)).tolist()
    wrapped = XlaFullyShardedDataParallel(plain)
    assert wrapped(torch.ones(1, 3).to(xm.xla_device())).tolist() == expected
    assert wrapped[0].out_features == 2
    assert repr(plain) == shown
    with pytest.raises(RuntimeError, match="wrapped already"):
        XlaFullyShardedDataParallel(wrapped)


def test_gradients_that_are_not_reduced_yet_are_added_to_those_that_are(xm):
    from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel

    wrapped = XlaFullyShardedDataParallel(torch.nn.Linear(2, 1, bias=False))
    inputs = torch.ones(1, 2).to(xm.xla_device())
    (own,) = wrapped.parameters()
    with wrapped.no_sync():
        wrapped(inputs).sum().backward()
    assert own.grad is None
    wrapped(inputs).sum().backward()
    assert own.grad.tolist() == [2.0, 2.0]


def test_a_structure_is_saved_with_a_file_for_each_tensor(xm, tmp_path):
    import torch_xla.utils.serialization as xser

    data = {"weights": [torch.arange(3).to(xm.xla_device())], "step": 7}
    path = str(tmp_path / "state")
    xser.save(data, path)
    loaded = xser.load(path)
    assert loaded["weights"][0].tolist() == [0, 1, 2]
    assert loaded["step"] == 7
    assert (tmp_path / "state.tensors" / "tensor_0.pt").is_file()


def test_a_checkpointed_module_does_its_whole_forward_pass_again(xm):
    from torch_xla.distributed.fsdp.utils import checkpoint_module

    class Noted(torch.nn.Linear):
        calls = 0

        def forward(self, values):
            result = super().forward(values).relu()
            self.calls += 1
            return result

    module = checkpoint_module(Noted(4, 4).to("xla"))
    module(torch.ones(2, 4, requires_grad=True).to("xla")).sum().backward()
    assert module.calls == 2
    assert module.weight.grad is not None
