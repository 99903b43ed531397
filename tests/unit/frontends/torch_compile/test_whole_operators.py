"""Upsampling stays one operator in compiled graphs, forward and backward; tracing elsewhere is as before."""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch.nn import functional

from neuron_tools.frontends.torch_compile.whole_operators import kept_whole

aten = torch.ops.aten


@pytest.fixture
def traced():
    """A back end that keeps the targets of the forward and the backward graph."""
    targets = []

    def keep(graph_module, inputs):
        targets.append({node.target for node in graph_module.graph.nodes if node.op == "call_function"})
        return graph_module.forward

    def backend(graph_module, inputs):
        with kept_whole():
            return aot_autograd(fw_compiler=keep, bw_compiler=keep)(graph_module, inputs)

    torch._dynamo.reset()
    return backend, targets


@pytest.mark.parametrize(
    ("mode", "shape", "forward", "backward"),
    [
        ("nearest", (1, 2, 4, 3), aten.upsample_nearest2d, aten.upsample_nearest2d_backward),
        ("bilinear", (1, 2, 4, 3), aten.upsample_bilinear2d, aten.upsample_bilinear2d_backward),
        ("linear", (1, 2, 4), aten.upsample_linear1d, aten.upsample_linear1d_backward),
        ("nearest-exact", (1, 2, 4), aten._upsample_nearest_exact1d, aten._upsample_nearest_exact1d_backward),
    ],
)
def test_it_is_one_operator_each_way(traced, mode, shape, forward, backward):
    backend, targets = traced
    data = torch.randn(shape, requires_grad=True)

    def double(x):
        return functional.interpolate(x, scale_factor=2, mode=mode)

    result = torch.compile(double, backend=backend)(data)
    result.sum().backward()
    torch.testing.assert_close(result, double(data))
    (upward, back) = targets
    assert forward.default in upward or forward.vec in upward
    assert backward.default in back
    assert not {aten._unsafe_index.Tensor, aten._unsafe_index_put.default} & (upward | back)


def test_what_others_trace_is_as_before_also_after_a_failure():
    before = dict(aten.upsample_nearest2d.default.py_kernels)

    def fail():
        with kept_whole():
            assert aten.upsample_nearest2d.default.py_kernels != before
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert aten.upsample_nearest2d.default.py_kernels == before
