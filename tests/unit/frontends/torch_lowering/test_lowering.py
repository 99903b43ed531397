import pytest

from neuron_tools.frontends.torch_lowering import lowering, mlir
from neuron_tools.records.program import FrameworkOperation


def add_relu(builder):
    import torch

    x = builder.parameter(torch.empty(4))
    return [builder.call(torch.ops.aten.relu.default, [x], {}, 0)]


def test_a_graph_that_fails_whatever_is_cut_out_ends_in_an_error(monkeypatch):
    def refuse(*_):
        raise mlir.LoweringFailure([], "always")

    monkeypatch.setattr(lowering, "_lower_rest", refuse)
    monkeypatch.setattr(lowering.VERDICTS, "refuse", lambda node, reason: False)
    with pytest.raises(mlir.LoweringFailure, match="always"):
        lowering.lower(add_relu, [FrameworkOperation("aten::relu")], "main")
