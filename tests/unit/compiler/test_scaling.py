"""Time grows with the batch: never by more than the work does, and never the other way."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compiler.compile import compile_module
from neuron_tools.simulator import simulate
from tests.unit.compiler.operators import lowered

ATEN = torch.ops.aten
BATCHES = (2, 4, 8, 16)
MOST = 2.1
"""Times of twice the batch: a little over 2, as blocks are cut in another way."""
LEAST = 0.97


def given(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def convolution(
    batch: int, channels: int, side: int, kernel: tuple[int, ...], groups: int
) -> tuple[Any, ...]:
    padding = [kernel[-1] // 2] * 2
    image, weight = given(batch, channels, side, side), given(*kernel)
    window = None, [1, 1], padding, [1, 1], False, [0, 0], groups
    return ATEN.convolution.default, image, weight, *window


OPERATORS: dict[str, Callable[[int], tuple[Any, ...]]] = {
    "a linear layer of 128 tokens": lambda b: (ATEN.mm.default, given(b * 128, 768), given(3072, 768).t()),
    "a linear layer of one token": lambda b: (ATEN.mm.default, given(b, 4096), given(4096, 4096).t()),
    "a layer norm": lambda b: (
        ATEN.native_layer_norm.default, given(b, 128, 768), [768], given(768), given(768), 1e-5
    ),
    "a softmax": lambda b: (ATEN._softmax.default, given(b, 12, 128, 128), 3, False),
    "a GELU": lambda b: (ATEN.gelu.default, given(b, 128, 3072)),
    "a convolution": lambda b: convolution(b, 64, 56, (64, 64, 3, 3), 1),
    "a depthwise convolution": lambda b: convolution(b, 96, 56, (96, 1, 7, 7), 96),
    "max pooling": lambda b: (
        ATEN.max_pool2d_with_indices.default, given(b, 64, 112, 112), [3, 3], [2, 2], [1, 1]
    ),
    "an embedding": lambda b: (
        ATEN.embedding.default, given(30522, 768), given(b, 128, dtype=torch.int64)
    ),
    "a decoder's products with its cache": lambda b: (
        ATEN.bmm.default, given(b * 8, 4, 128), given(b * 8, 2048, 128).transpose(1, 2)
    ),
    "the largest logits": lambda b: (ATEN.topk.default, given(b, 32000), 8, -1, True, True),
    "a roll": lambda b: (ATEN.roll.default, given(b, 56, 56, 96), [-3, -3], [1, 2]),
}  # fmt: skip


@pytest.mark.parametrize("target", ["trn1", "trn2"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_twice_the_batch_takes_between_once_and_twice_the_time(operator, target):
    core = hardware.get(target)
    times = [
        simulate(compile_module(lowered(*OPERATORS[operator](batch)), core), core).duration_ps
        for batch in BATCHES
    ]
    for before, after in pairwise(times):
        assert LEAST * before <= after <= MOST * before
