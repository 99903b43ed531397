import pytest

from neuron_tools.frontends.torch_lowering import lowering, mlir
from neuron_tools.frontends.torch_lowering.fake import fake_tensor
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


def test_only_calls_that_fail_by_themselves_are_blamed_where_torch_mlir_names_none(monkeypatch):
    import torch

    def build(builder):
        values = builder.parameter(fake_tensor((4, 8), None, torch.float32))
        classes = builder.parameter(fake_tensor((32,), None, torch.int64))
        unordered = builder.call(torch.ops.aten.topk.default, [values, 2, -1, True, False], {}, 0)
        return [*unordered, *builder.call(torch.ops.aten.sort.default, [classes], {}, 0)]

    def fail(*_):
        raise mlir.LoweringFailure([], "unknown")

    blamed = []
    monkeypatch.setattr(lowering, "_lower_rest", fail)
    monkeypatch.setattr(lowering.VERDICTS, "refuse", lambda node, reason: blamed.append(node.target))
    with pytest.raises(mlir.LoweringFailure, match="unknown"):
        lowering.lower(build, [FrameworkOperation("aten::sort")], "main")
    assert blamed == [torch.ops.aten.topk.default]


def unordered_tops(builder):
    """Two calls of one signature, which torch-mlir refuses and a decomposition can do."""
    import torch

    values = builder.parameter(fake_tensor((5, 11), None, torch.float32))
    arguments = [3, -1, True, False]
    first, _ = builder.call(torch.ops.aten.topk.default, [values, *arguments], {}, 0)
    shifted = builder.call(torch.ops.aten.neg.default, [values], {}, 0)
    second, _ = builder.call(torch.ops.aten.topk.default, [shifted, *arguments], {}, 0)
    return [first, second]


def test_two_refused_calls_of_one_signature_are_decomposed(monkeypatch):
    monkeypatch.setattr(lowering.VERDICTS, "_verdicts", {})
    module = lowering.lower(unordered_tops, [FrameworkOperation("aten::topk")], "main")
    opcodes = [operation.opcode for operation in module.operations]
    assert opcodes.count("sort") == 2
    assert "custom_call" not in opcodes


def test_what_another_thread_has_learnt_meanwhile_is_tried(monkeypatch):
    monkeypatch.setattr(lowering.VERDICTS, "_verdicts", {})
    lower_rest, others = lowering._lower_rest, []

    def after_another(*arguments):
        if not others:
            others.append(None)
            others[0] = lowering.lower(unordered_tops, [FrameworkOperation("aten::topk")], "other")
        return lower_rest(*arguments)

    monkeypatch.setattr(lowering, "_lower_rest", after_another)
    module = lowering.lower(unordered_tops, [FrameworkOperation("aten::topk")], "main")
    assert "custom_call" not in {operation.opcode for operation in module.operations}
