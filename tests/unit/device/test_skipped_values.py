"""Without values operators give results of the right shapes, whose memory takes no place."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import resource, torch
device = "neuron"
weight = torch.nn.Linear(1 << 17, 1 << 17, device=device, dtype=torch.bfloat16)
y = weight(torch.empty(1 << 14, 1 << 17, device=device, dtype=torch.bfloat16))
y.square().mean().backward()
optimizer = torch.optim.AdamW(weight.parameters(), foreach=True)
optimizer.step()
assert weight.weight.grad.shape == weight.weight.shape
assert torch.neuron.max_memory_allocated() > 100 << 30
assert y.sum().item() == 0.0 and y[:2, :2].cpu().tolist() == [[0.0, 0.0], [0.0, 0.0]]

numbers = torch.arange(6, device=device).view(2, 3)
assert (numbers * 2 + 1).cpu().tolist() == [[1, 3, 5], [7, 9, 11]]
assert numbers[numbers > 3].cpu().tolist() == [4, 5]
places = torch.arange(1 << 18, device=device)
seen = places[:, None] >= places[None, :]
assert seen.shape == (1 << 18, 1 << 18) and seen.dtype == torch.bool, "64 GiB: computed it would not fit"
assert (places[:4, None] >= places[None, :2]).tolist() == [[True, False], *[[True, True]] * 3]

x = torch.empty(4, 8, device=device)
assert x.transpose(0, 1).add_(1).data_ptr() == x.data_ptr()
out = torch.empty(0, device=device)
torch.mm(x, x.t(), out=out)
assert out.shape == (4, 4)
assert x.clone().transpose_(0, 1).shape == (8, 4)
first, second = torch.split(torch.relu(x), 4, dim=1)
assert first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
query = torch.empty(2, 4, 128, 64, device=device, requires_grad=True)
torch.nn.functional.scaled_dot_product_attention(query, query, query, is_causal=True).sum().backward()
assert query.grad.shape == query.shape

mask = torch.tensor([True, False, True, False], device=device)
assert x[mask].shape == (2, 8) and x[mask, 3].shape == (2,) and x[:, mask.repeat(2)].shape == (4, 4)
assert x[x > 0].shape == (0,)
places = torch.tensor([0, 2, 3], device=device)
assert x[places].shape == (3, 8) and x[[0, 1], 2].shape == (2,) and x[places.int()].shape == (3, 8)
assert weight.weight[torch.arange(1 << 16, device=device)].shape == (1 << 16, 1 << 17)
leaf = torch.empty(4, 8, device=device, requires_grad=True)
leaf[mask].sum().backward()
assert leaf.grad.shape == (4, 8)

logits = torch.empty(50, 4, 20, device=device, requires_grad=True)
labels, steps = torch.ones(4, 30, dtype=torch.long, device=device), torch.full((4,), 50, device=device)
lengths = torch.tensor([10, 12, 13, 26], device=device)
loss = torch.nn.functional.ctc_loss(logits.log_softmax(2), labels, steps, lengths)
loss.backward()
assert loss.shape == () and logits.grad.shape == logits.shape
found = torch.ops.aten._ctc_loss(logits.detach(), labels, steps, lengths)
assert [each.shape for each in found] == [(4,), (4, 50, 2 * 26 + 1)]
solution = torch.linalg.lstsq(torch.empty(5, 3, device=device), torch.empty(5, 2, device=device)).solution
assert solution.shape == (3, 2)
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 3 << 20, "KiB"
"""

PLACES = """
import torch
scores = torch.empty(2, 3, 8, device="neuron")
places = torch.topk(scores, 2, sorted=False).indices
assert places.shape == (2, 3, 2)
assert torch.bincount(places.flatten(), minlength=8).tolist() == [2] * 4 + [1] * 4
assert (places[..., 0] != places[..., 1]).all(), "a row chooses different places"
assert torch.topk(scores, 2, dim=1).indices[0, 0].tolist() == [0, 2, 1, 0, 2, 1, 0, 2], "two a column"
assert torch.argsort(scores[0], dim=1, descending=True)[2].tolist() == [*range(8)], "a permutation"
assert scores.argmax(-1).tolist() == [[0, 1, 2], [3, 4, 5]] and scores.argmax().item() == 0
assert scores.argmin(1, keepdim=True).shape == (2, 1, 8)
assert scores.max(1).indices.tolist() == [[0, 1, 2, 0, 1, 2, 0, 1], [2, 0, 1, 2, 0, 1, 2, 0]]
assert torch.multinomial(scores[0], 3)[1].tolist() == [3, 4, 5]
written = torch.empty(2, 3, 2, device="neuron"), torch.empty(2, 3, 2, dtype=torch.long, device="neuron")
torch.topk(scores, 2, out=written)
assert torch.equal(written[1], places)
assert torch.topk(torch.tensor(1.0, device="neuron"), 1).indices.item() == 0
assert torch.empty(0, 3, device="neuron").argmax(1).shape == (0,)
"""

ROUTER = """
import torch
tokens, experts, chosen = 1 << 14, 256, 8
scores = torch.empty(tokens, experts, device="neuron").sigmoid()
places = torch.topk(scores, chosen, sorted=False).indices
even = [tokens * chosen // experts] * experts
routed = torch.zeros_like(scores, dtype=torch.bool).scatter_(-1, places, True)
assert routed.sum(0).tolist() == even
assert torch.zeros_like(scores).int().scatter(1, places, 1).bool().sum(0).tolist() == even
assert torch.nn.functional.one_hot(places, experts).sum((0, 1)).tolist() == even
assert (routed & routed.logical_not()).sum().item() == 0
quantized = torch.ones(2048, 2048, dtype=torch.int8, device="neuron")
assert quantized.sum().item() == 0, "values of weights are left out"
packed = torch.ones(2048, 2048, dtype=torch.int32).to("neuron")
assert packed.sum().item() == 0, "values of packed weights from the host are left out"
assert torch.ones(1024, 1024, dtype=torch.int32).to("neuron").sum().item() == 1 << 20
assert torch.ones(1024, 2048, dtype=torch.int64).to("neuron").sum().item() == 1 << 21, "labels decide"
"""

MASKS = """
import resource, torch
places = torch.arange(1 << 13, device="neuron")
rows, columns = places[:, None], places[None, :]
masks = [(rows >= columns) & (rows == columns).logical_not() for _ in range(64)]
assert masks[0].shape == (1 << 13, 1 << 13) and masks[0].dtype == torch.bool
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 << 20, "KiB: 64 MiB each if computed"
count = masks[0].numel()
assert masks[0].fill_(True).sum().item() == count and masks[0].logical_not().sum().item() == 0
assert masks[1].copy_(torch.ones(1 << 13, 1 << 13, dtype=torch.bool)).logical_not().sum().item() == 0
assert (masks[2] | masks[0]).sum().item() == count, "one of both has values"
assert masks[2].logical_or_(masks[0]).logical_not().sum().item() == 0, "written, it has values"
"""

DECISIONS = """
import resource, torch
x = torch.empty(2048, 2048, device="neuron")
norm = torch.linalg.vector_norm(x)
assert torch.isfinite(norm) and not (~torch.isfinite(norm) | (norm < 0)).any(), "an update would be skipped"
assert torch.isfinite(x).all() and not torch.isnan(x).any() and not (x > 0).any() and (x == 0).all()
assert (norm >= torch.zeros(3, dtype=torch.long, device="neuron")).tolist() == [True] * 3
out = torch.empty(0, dtype=torch.bool, device="neuron")
assert torch.le(x, 1.0, out=out).all() and out.shape == x.shape
row = torch.empty(1 << 13, device="neuron")
masks = [row[:, None] <= row[None, :] for _ in range(64)]
assert masks[0].shape == (1 << 13, 1 << 13)
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 << 20, "KiB: 64 MiB each if computed"
"""

PEAK = """
import torch
from torch.nn import functional
device = "neuron"
query = torch.randn(1, 4, 256, 16, device=device, requires_grad=True)
mask = torch.zeros(1, 4, 256, 256, device=device)
x = torch.randn(2, 8, 32, 32, device=device)
weight = torch.randn(8, 8, 3, 3, device=device, requires_grad=True)
scale = torch.ones(32, device=device)
torch.neuron.reset_peak_memory_stats()
functional.scaled_dot_product_attention(query, query, query, attn_mask=mask).sum().backward()
print(torch.neuron.max_memory_allocated())
torch.neuron.reset_peak_memory_stats()
functional.layer_norm(functional.conv2d(x, weight, padding=1), (32,), scale, scale).sum().backward()
print(torch.neuron.max_memory_allocated())
"""


def run(script: str, values: str = "skip") -> str:
    """What a script prints that ends well."""
    environment = {**os.environ, "NEURON_TOOLS_VALUES": values}
    environment.pop("NEURON_TOOLS_HBM_BYTES", None)
    ended = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")
def test_a_layer_that_no_machine_here_holds_is_trained():
    run(SCRIPT)


@pytest.mark.parametrize("script", [PLACES, ROUTER], ids=["places", "router of many experts"])
def test_places_that_values_would_choose_are_chosen_equally_often(script: str):
    run(script)


def test_comparisons_of_values_that_read_as_zeros_are_those_of_zeros():
    run(DECISIONS)


def test_large_masks_are_joined_without_values_until_something_writes_them():
    run(MASKS)


def test_gradients_that_nobody_asks_for_take_no_memory_either():
    computed, skipped = ([int(peak) for peak in run(PEAK, values).split()] for values in ("compute", "skip"))
    assert computed == pytest.approx(skipped, abs=64)  # bytes: seeds of dropout, which shapes do not tell
