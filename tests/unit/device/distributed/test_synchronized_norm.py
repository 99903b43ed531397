"""The steps of SyncBatchNorm give what batch normalisation of the whole batch gives."""

from __future__ import annotations

import pytest
import torch

EPS, MOMENTUM = 1e-5, 0.1


@pytest.mark.parametrize("shape", [(5, 3, 4, 4), (6, 2)])
@pytest.mark.parametrize("affine", [True, False])
def test_parts_of_a_batch_are_normalised_as_the_whole(shape, affine):
    torch.manual_seed(0)
    x, grad = torch.randn(shape), torch.randn(shape)
    weight, bias = (torch.randn(shape[1]) for _ in range(2)) if affine else (None, None)
    wanted_mean, wanted_var = torch.zeros(shape[1]), torch.ones(shape[1])
    leaves = [each.clone().requires_grad_() for each in (x, weight, bias) if each is not None]
    y = torch.nn.functional.batch_norm(
        leaves[0], wanted_mean, wanted_var, *(leaves[1:] or (None, None)), True, MOMENTUM, EPS
    )
    y.backward(grad)

    parts = [each.to("neuron") for each in x.split([2, shape[0] - 2])]
    grads = [each.to("neuron") for each in grad.split([2, shape[0] - 2])]
    w, b = (None if each is None else each.to("neuron") for each in (weight, bias))
    known = [torch.batch_norm_stats(part, EPS) for part in parts]
    means, deviations = (torch.stack(each) for each in zip(*known, strict=True))
    counts = torch.tensor([part.numel() / shape[1] for part in parts], device="neuron")
    running = torch.zeros(shape[1], device="neuron"), torch.ones(shape[1], device="neuron")
    mean, invstd = torch.batch_norm_gather_stats_with_counts(
        parts[0], means, deviations, *running, MOMENTUM, EPS, counts
    )
    out = [torch.batch_norm_elemt(part, w, b, mean, invstd, EPS) for part in parts]
    sums = [
        torch.batch_norm_backward_reduce(g, part, mean, invstd, w, True, affine, affine)
        for g, part in zip(grads, parts, strict=True)
    ]
    total, along = sums[0][0] + sums[1][0], sums[0][1] + sums[1][1]
    found = [
        torch.batch_norm_backward_elemt(g, part, mean, invstd, w, total, along, counts.int())
        for g, part in zip(grads, parts, strict=True)
    ]

    def same(got: torch.Tensor, expected: torch.Tensor) -> None:
        torch.testing.assert_close(got.cpu(), expected, rtol=1e-4, atol=1e-5)

    same(torch.cat(out), y.detach())
    same(torch.cat(found), leaves[0].grad)
    same(running[0], wanted_mean)
    same(running[1], wanted_var)
    if affine:
        same(sums[0][2] + sums[1][2], leaves[1].grad)
        same(sums[0][3] + sums[1][3], leaves[2].grad)
