"""Models of several ranks with buckets, as neuronx-distributed puts them together."""

import io
from concurrent.futures import ThreadPoolExecutor
from typing import List  # noqa: UP035 - as TorchScript has it in AWS's guide

import pytest
import torch
from torch import nn

from neuron_tools import compat
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frontends.torch_lowering.meshes import mesh_name

RANKS, LENGTHS = 2, (4, 8)


class Part(nn.Module):
    """A rank's part of a product of a bucket's rows, and the sums of all rows that it ever got."""

    def __init__(self, rank: int, length: int, sums: int) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 3, bias=False)
        with torch.no_grad():
            self.linear.weight.fill_(rank + 1.0)
        self.calls = nn.Parameter(torch.zeros(()), requires_grad=False)
        self.sums = nn.Parameter(torch.zeros(sums), requires_grad=False)
        self.length = length

    def forward(self, rows):
        total = torch.ops._c10d_functional.all_reduce(self.linear(rows), "sum", mesh_name([[0, 1]]))
        sums = torch.cat([self.sums[: self.length] + rows.sum(1), self.sums[self.length :]])
        return {"total": torch.ops._c10d_functional.wait_tensor(total), "rows": rows}, sums, self.calls + 1


def pad(tensors: List[torch.Tensor], lengths: List[int]):  # noqa: UP006
    rows = tensors[0]
    bucket = 0 if rows.shape[0] <= lengths[0] else 1
    missing = max(lengths[bucket] - rows.shape[0], 0)
    return [torch.nn.functional.pad(rows, [0, 0, 0, missing])], torch.tensor([bucket])


def cut(shapes: List[List[List[int]]], states: List[torch.Tensor], number: torch.Tensor):  # noqa: UP006
    sums = torch.ops.aten.slice(states[0], dim=0, start=0, end=shapes[int(number)][0][0])
    return [sums, states[1]]


@pytest.fixture(scope="module")
def buckets():
    """Makes the ranks of a model, of which each has its buckets."""
    uninstall = compat.install()
    from torch_neuronx import BucketModelConfig
    from torch_neuronx.xla_impl.bucket_trace import create_bucket_model
    from torch_neuronx.xla_impl.trace import _trace

    def made(folder, lengths=LENGTHS, **options):
        config = BucketModelConfig(lambda: pad, bucket_kernel_constant_args=([*LENGTHS],), **options)
        ranks = []
        for rank in range(RANKS):
            models, aliases = [], []
            for number, length in enumerate(LENGTHS):
                part = Part(rank, length, lengths[number])
                aliases.append({part.sums: 2, part.calls: 3})
                where = folder / f"{rank}_{number}"
                file, *traced = _trace(part, (torch.ones(length, 2),), None, aliases[-1], where, "-O1", False)
                with open(file, "rb") as archive:
                    models.append((archive.read(), traced[0]))
            ranks.append(create_bucket_model(models, config, *traced[1:], aliases))
        return ranks

    yield made
    uninstall()


def load(models):
    import torch_neuronx

    for bucket in range(len(LENGTHS)):
        for rank, model in enumerate(models):
            loaded = model.bucket_model_executor.models[bucket]
            torch.ops.neuron._load_collectives_neuron(loaded, rank, 1, rank, RANKS)
    for rank, model in enumerate(models):
        torch_neuronx.move_trace_to_device(model, rank)
    return models


def call(models, rows):
    with ThreadPoolExecutor(RANKS) as threads:
        return [each.result() for each in [threads.submit(model, torch.ones(rows, 2)) for model in models]]


def again(models):
    loaded = []
    for model in models:
        buffer = io.BytesIO()
        torch.jit.save(model, buffer)
        buffer.seek(0)
        loaded.append(torch.jit.load(buffer))
    return loaded


def states(model):
    buckets = (model.bucket_0, model.bucket_1)
    return [(bucket.state_1.cpu().tolist(), bucket.state_0.item()) for bucket in buckets]


@pytest.mark.parametrize("kept", [lambda models: models, again], ids=["traced", "loaded"])
def test_each_call_takes_the_bucket_that_it_fits_and_weights_are_held_once(buckets, tmp_path, kept):
    models = load(kept(buckets(tmp_path, (8, 8))))
    for rows, bucket in ((3, 4), (6, 8)):
        for result in call(models, rows):
            expected = torch.zeros(bucket, 3)
            expected[:rows] = 6.0
            torch.testing.assert_close(result[0]["total"].cpu(), expected)
    assert states(models[1]) == [([2.0] * 3 + [0.0] * 5, 1.0), ([2.0] * 6 + [0.0] * 2, 1.0)]
    assert models[0].bucket_0.weight_0.data_ptr() == models[0].bucket_1.weight_0.data_ptr()
    assert str(models[1].bucket_0.weight_0.device) == "neuron:1"
    with pytest.raises(NeuronToolsError, match=r"shape \[10, 2\] do not fit bucket 1, which takes \[8, 2\]"):
        call(models, 10)


def test_shared_states_are_cut_to_the_size_of_each_bucket(buckets, tmp_path):
    options = {
        "shared_state_buffer": [torch.zeros(8), torch.zeros(())],
        "shared_state_buffer_preprocessor": lambda: cut,
    }
    models = load(again(buckets(tmp_path, **options)))
    call(models, 3)
    call(models, 6)
    assert states(models[1]) == [([4.0] * 3 + [2.0] * 3 + [0.0] * 2, 2.0)] * 2


def test_shared_states_need_no_cut_where_all_buckets_take_them_whole(buckets, tmp_path):
    models = load(buckets(tmp_path, (8, 8), shared_state_buffer=[torch.zeros(8), torch.ones(())]))
    call(models, 3)
    call(models, 6)
    assert states(models[0]) == [([4.0] * 3 + [2.0] * 3 + [0.0] * 2, 3.0)] * 2


def test_states_of_other_sizes_that_are_not_cut_are_refused(buckets, tmp_path):
    with pytest.raises(
        NeuronToolsError, match=r"Bucket 0 has the state sums as float32\[4\], and another has"
    ):
        buckets(tmp_path)
    with pytest.raises(
        NeuronToolsError, match=r"shared states are float32\[8\], .* bucket 0 has float32\[4\]"
    ):
        buckets(tmp_path, shared_state_buffer=[torch.zeros(8), torch.zeros(())])
