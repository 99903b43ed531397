"""StableHLO made from operators computes what ATen computes, by an engine that is neither."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils import _pytree as pytree

from neuron_tools.frontends.torch_lowering import mlir
from neuron_tools.frontends.torch_lowering.builder import GraphBuilder
from neuron_tools.frontends.torch_lowering.decompositions import decomposition_table, fallback_table
from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from neuron_tools.frontends.torch_lowering.partition import partition
from tests.unit.frontends import xla

pytest.importorskip("jax")

aten = torch.ops.aten
torch.manual_seed(0)


def f(*sizes):
    return torch.randn(sizes)


ATTENTION = (f(2, 4, 6, 8), f(2, 2, 6, 8), f(2, 2, 6, 8))
PLACES = torch.tensor([[0, 1, 4], [0, 3, 4], [2, 1, 0], [2, 2, 4]])
BAGGED, OFFSETS = torch.tensor([0, 2, 5, 1, 1, 3, 4]), torch.tensor([0, 3, 3])


def bags(*args):
    """The other results are kept for the backward pass, each kernel in its own way."""
    return aten._embedding_bag.default(*args)[0]


CALLS = {
    "addmm": (aten.addmm.default, (f(3), f(4, 6), f(3, 6).t())),
    "baddbmm": (aten.baddbmm.default, (f(2, 4, 3), f(2, 4, 6), f(2, 6, 3)), {"beta": 0.5, "alpha": 2}),
    "layer norm": (aten.native_layer_norm.default, (f(4, 6), [6], f(6), f(6), 1e-5)),
    "softmax": (aten._softmax.default, (f(4, 6), -1, False)),
    "attention": (aten._scaled_dot_product_flash_attention_for_cpu.default, (*ATTENTION, 0.0, True)),
    "average pool backward": (
        aten.avg_pool2d_backward.default,
        (f(1, 2, 4, 4), f(1, 2, 7, 7), [3, 3], [2, 2], [1, 1], False, False, None),
    ),
    "average pool of volumes backward": (
        aten.avg_pool3d_backward.default,
        (f(1, 2, 2, 2, 3), f(1, 2, 4, 4, 6), [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, None),
    ),
    "adaptive pool": (aten._adaptive_avg_pool2d.default, (f(1, 2, 7, 5), [3, 2])),
    "adaptive pool backward": (aten._adaptive_avg_pool2d_backward.default, (f(1, 2, 3, 2), f(1, 2, 7, 5))),
    "even adaptive pool backward": (
        aten._adaptive_avg_pool2d_backward.default,
        (f(1, 2, 3, 2), f(1, 2, 6, 4)),
    ),
    "bilinear backward": (
        aten.upsample_bilinear2d_backward.default,
        (f(1, 2, 8, 6), [8, 6], [1, 2, 4, 3], False),
    ),
    "uneven nearest backward": (
        aten.upsample_nearest2d_backward.default,
        (f(1, 2, 8, 6), [8, 6], [1, 2, 3, 4]),
    ),
    "nearest": (aten.upsample_nearest2d.default, (f(1, 2, 4, 3), [8, 9])),
    "nearest by a scale that is not whole": (aten.upsample_nearest1d.default, (f(1, 2, 10), [20], 2.05)),
    "uneven nearest": (aten.upsample_nearest2d.default, (f(1, 2, 4, 3), [7, 5])),
    "exact nearest": (aten._upsample_nearest_exact1d.default, (f(1, 2, 4), [7])),
    "nearest in three dimensions": (aten.upsample_nearest3d.default, (f(1, 2, 2, 3, 2), [4, 3, 6])),
    "linear": (aten.upsample_linear1d.default, (f(1, 2, 5), [9], False)),
    "bilinear at corners": (aten.upsample_bilinear2d.default, (f(1, 2, 4, 3), [7, 8], True)),
    "trilinear": (aten.upsample_trilinear3d.default, (f(1, 1, 3, 2, 4), [5, 4, 4], False)),
    "nearest backward": (aten.upsample_nearest2d_backward.default, (f(1, 2, 8, 6), [8, 6], [1, 2, 4, 3])),
    "batch norm": (aten.native_batch_norm.default, (f(2, 3, 4), f(3), f(3), None, None, True, 0.1, 1e-5)),
    "convolution": (
        aten.convolution.default,
        (f(2, 4, 8, 8), f(6, 2, 3, 3), f(6), [2, 1], [1, 0], [1, 2], False, [0, 0], 2),
    ),
    "slice backward": (aten.slice_backward.default, (f(4, 2), [4, 6], 1, -5, 2**63 - 1, 3)),
    "slice scatter": (aten.slice_scatter.default, (f(4, 6), f(4, 2), 1, 1, 5, 2)),
    "diagonal": (aten.diagonal_copy.default, (f(4, 6), 1)),
    "as strided": (aten.as_strided_copy.default, (f(12), [3, 2, 2], [1, 3, 2], 1)),
    "masked scatter backward": (aten.masked_scatter_backward.default, (f(3, 5), f(5) > 0, [3, 4])),
    "masked scatter backward of more": (aten.masked_scatter_backward.default, (f(3), f(3) > 0, [5])),
    "scatter into a dense part": (aten.as_strided_scatter.default, (f(12), f(2, 4), [2, 4], [4, 1], 3)),
    "scatter into a strided part": (aten.as_strided_scatter.default, (f(3, 5), f(3, 2), [3, 2], [2, 7], 1)),
    "cumprod": (aten.cumprod.default, (f(3, 7), 1)),
    "cummax": (aten.cummax.default, (f(3, 7), 1)),
    "median": (aten.median.dim, (f(4, 7), 1)),
    "histogram": (aten.histc.default, (f(50), 7, -1.0, 1.5)),
    "lerp": (aten.lerp.Scalar, (f(4), f(4), 0.1)),
    "embedding backward": (
        aten.embedding_dense_backward.default,
        (f(5, 3), torch.tensor([1, 2, 1, 0, 3]), 4, -1, False),
    ),
    "searchsorted": (aten.searchsorted.Tensor, (torch.arange(5.0), f(3, 4))),
    "scatter maximum": (aten.scatter_reduce.two, (f(5, 3), 0, PLACES, f(6, 3), "amax")),
    "scatter product": (
        aten.scatter_reduce.two,
        (f(5, 3), 0, PLACES, f(6, 3), "prod"),
        {"include_self": False},
    ),
    "scatter mean": (aten.scatter_reduce.two, (f(5, 3), 0, PLACES, f(6, 3), "mean")),
    "integer scatter minimum": (
        aten.scatter_reduce.two,
        (torch.arange(15).reshape(5, 3), 0, PLACES, torch.arange(18).reshape(6, 3), "amin"),
        {"include_self": False},
    ),
    "index reduce": (aten.index_reduce.default, (f(5, 3), 0, PLACES[:, 0], f(4, 3), "amin")),
    "take": (aten.take.default, (f(4, 3), torch.tensor([[0, -1], [5, 7]]))),
    "put": (aten.put.default, (f(4, 3), torch.tensor([0, -1, 5]), f(3), True)),
    "bag sum": (bags, (f(6, 4), BAGGED, OFFSETS, False, 0, False, f(7))),
    "bag maximum": (bags, (f(6, 4), BAGGED, OFFSETS, False, 2)),
    "bag mean": (bags, (f(6, 4), BAGGED, OFFSETS, False, 1, False, None, False, 2)),
    "replication pad backward": (
        aten.replication_pad2d_backward.default,
        (f(1, 2, 5, 9), f(1, 2, 4, 6), [1, 2, -1, 2]),
    ),
    "distances backward": (
        aten._cdist_backward.default,
        (f(3, 4), f(3, 2), f(4, 2), 2.0, f(3, 4).abs() + 1),
    ),
    "soft shrink backward": (aten.softshrink_backward.default, (f(9), f(9), 0.5)),
    "adaptive volume pool": (aten._adaptive_avg_pool3d.default, (f(1, 2, 5, 4, 3), [2, 3, 1])),
    "adaptive volume pool backward": (
        aten._adaptive_avg_pool3d_backward.default,
        (f(1, 2, 2, 3, 1), f(1, 2, 5, 4, 3)),
    ),
    "bicubic backward": (
        aten.upsample_bicubic2d_backward.default,
        (f(1, 2, 6, 7), [6, 7], [1, 2, 4, 3], False),
    ),
    "smooth bilinear": (aten._upsample_bilinear2d_aa.default, (f(1, 2, 9, 7), [4, 10], False)),
    "smooth bilinear backward": (
        aten._upsample_bilinear2d_aa_backward.default,
        (f(1, 2, 4, 10), [4, 10], [1, 2, 9, 7], True),
    ),
    "smooth bicubic": (aten._upsample_bicubic2d_aa.default, (f(1, 2, 9, 7), [4, 10], True)),
    "smooth bicubic backward": (
        aten._upsample_bicubic2d_aa_backward.default,
        (f(1, 2, 4, 3), [4, 3], [1, 2, 9, 7], False, 0.5, 0.4),
    ),
    "grid sampler": (aten.grid_sampler_2d.default, (f(2, 3, 5, 6), f(2, 3, 4, 2) / 2, 2, 2, False)),
    "volume grid sampler": (
        aten.grid_sampler_3d.default,
        (f(2, 3, 5, 6, 4), f(2, 3, 4, 2, 3) / 2, 0, 0, True),
    ),
    "volume grid sampler backward": (
        aten.grid_sampler_3d_backward.default,
        (f(1, 2, 3, 4, 2), f(1, 2, 5, 6, 3), f(1, 3, 4, 2, 3) / 2, 0, 0, False, [True, True]),
    ),
    "grid sampler backward": (
        aten.grid_sampler_2d_backward.default,
        (f(1, 2, 3, 4), f(1, 2, 5, 6), f(1, 3, 4, 2) / 2, 0, 0, False, [True, True]),
    ),
    "nearest grid sampler backward": (
        aten.grid_sampler_2d_backward.default,
        (f(1, 2, 3, 4), f(1, 2, 5, 6), f(1, 3, 4, 2) / 2, 1, 1, True, [True, True]),
    ),
    "margin loss backward": (
        aten.multi_margin_loss_backward.default,
        (f(4), f(4, 3), torch.tensor([0, 2, 1, 1]), 1, 1.0, None, 0),
    ),
    "shift of rows": (
        aten.bitwise_left_shift.Tensor,
        (torch.arange(4).reshape(4, 1), torch.arange(3)),
    ),
    "index put": (aten.index_put.default, (f(4, 3), [torch.tensor([1, 1, 3])], f(3, 3), True)),
}


def lowered_results(target, args, kwargs):
    """Results of the operator's StableHLO, run by XLA."""
    builder, inputs = GraphBuilder(), []

    def place(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        stored = StoredTensor(leaf.dtype, tuple(leaf.shape), tuple(leaf.stride()))
        inputs.append(leaf.permute(stored.storage_order).numpy())
        return stored.place(builder)

    placed_args, placed_kwargs = pytree.tree_map(place, (args, kwargs))
    result = builder.call(target, placed_args, placed_kwargs, row=0)
    nodes = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.fx.Node)]
    cut = partition(builder.parameters, nodes)
    assert cut.cuts == ()
    with mlir.LOCK:
        text = str(mlir.to_stablehlo(cut.graph))
    computed = xla.run(text, inputs)
    return [computed[position] for position in cut.results]


GROUPED = {
    "rows": ((7, 16), (3, 16, 8), [3, 3, 7]),
    "rows of several blocks": ((400, 16), (4, 16, 8), [150, 150, 151, 400]),
    "fewer rows than groups": ((2, 16), (6, 16, 8), [0, 0, 1, 1, 2, 2]),
    "rows of the second": ((3, 5, 16), (16, 300), [256, 257, 300]),
    "columns": ((5, 16), (16, 8), [8, 8, 16]),
    "no rows": ((0, 16), (3, 16, 8), [0, 0, 0]),
    "columns of several blocks": ((5, 400), (400, 8), [150, 150, 151, 400]),
    "columns of the second": ((3, 5, 16), (16, 8), [3, 3, 8]),
    "batches": ((3, 5, 16), (3, 16, 8), None),
}


@pytest.mark.parametrize("name", GROUPED)
def test_grouped_products_are_the_products_of_the_groups(name):
    first, second, ends = GROUPED[name]
    arguments = (f(*first), f(*second), None if ends is None else torch.tensor(ends, dtype=torch.int32))
    expected = aten._grouped_mm.default(*arguments)
    torch.testing.assert_close(decomposition_table()[aten._grouped_mm.default](*arguments), expected)


def test_gradients_of_grouped_weights_are_summed_in_fp32():
    first, second = torch.ones(1, 1 << 15), torch.full((1 << 15, 1), 0.01)
    arguments = (first.bfloat16(), second.bfloat16(), torch.tensor([1 << 15], dtype=torch.int32))
    product = decomposition_table()[aten._grouped_mm.default](*arguments)
    exact = (first.bfloat16().double() @ second.bfloat16().double()).reshape(1, 1, 1)
    assert product.dtype == torch.bfloat16
    torch.testing.assert_close(product, exact.bfloat16(), rtol=0, atol=0)


REFUSED = {
    "cropped convolution": (
        aten.convolution.default,
        (f(2, 4, 1, 8), f(4, 3, 1, 3), f(3), [1, 2], [0, 1], [1, 1], True, [0, 1], 1),
    ),
    "outgrown convolution": (
        aten.convolution.default,
        (f(2, 4, 5), f(4, 3, 3), None, [3], [1], [1], True, [2], 1),
    ),
    "average pool": (aten.avg_pool2d.default, (f(2, 7, 9), [3, 2], [2, 2], [1, 0], True, False)),
    "divided average pool": (aten.avg_pool2d.default, (f(1, 2, 7, 9), [3], [], [1], False, True, 5)),
    "reciprocal of integers": (aten.reciprocal.default, (torch.arange(-3, 5),)),
    "volume average pool": (aten.avg_pool3d.default, (f(1, 2, 4, 5, 6), [2, 3, 2], [2, 2, 2])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_stands_for_refused_shapes_computes_atens_values(name):
    target, args = REFUSED[name]
    torch.testing.assert_close(fallback_table()[target](*args), target(*args), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CALLS)
def test_values_are_atens(name):
    target, args, *rest = CALLS[name]
    kwargs = rest[0] if rest else {}
    expected = [
        leaf for leaf in pytree.tree_leaves(target(*args, **kwargs)) if isinstance(leaf, torch.Tensor)
    ]
    results = lowered_results(target, args, kwargs)
    assert len(results) == len(expected)
    for result, value in zip(results, expected):
        np.testing.assert_allclose(result, value.numpy(), rtol=2e-4, atol=2e-5)
