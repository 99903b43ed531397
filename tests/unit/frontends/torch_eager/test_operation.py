"""Every operator signature becomes a module with the operator's own result shapes."""

from __future__ import annotations

import pytest
import torch
from torch.utils import _pytree as pytree

from neuron_tools.frontends.torch_eager.operation import lower_operation
from neuron_tools.frontends.torch_eager.schema import UnknownOperator
from tests.unit.frontends.signatures import describe, describe_call

aten = torch.ops.aten


def f(*sizes):
    return torch.rand(sizes) + 0.5


def i(high, *sizes):
    return torch.randint(0, high, sizes)


CALLS = {
    "add": (aten.add.Tensor, (f(4, 6), f(6))),
    "add scalar": (aten.add.Scalar, (f(4, 6), 2.5)),
    "sub alpha": (aten.sub.Tensor, (f(4, 6), f(4, 6)), {"alpha": 2}),
    "mul in place": (aten.mul_.Tensor, (f(4, 6), f(4, 6))),
    "add out": (aten.add.out, (f(4, 6), f(4, 6)), {"out": f(4, 6)}),
    "div": (aten.div.Tensor, (f(4, 6), f(4, 1))),
    "addcmul": (aten.addcmul.default, (f(4), f(4), f(4)), {"value": 0.5}),
    "addcdiv in place": (aten.addcdiv_.default, (f(4), f(4), f(4)), {"value": -0.5}),
    "lerp": (aten.lerp.Scalar, (f(4), f(4), 0.1)),
    "pow": (aten.pow.Tensor_Scalar, (f(4), 2)),
    "rsqrt": (aten.rsqrt.default, (f(4),)),
    "where": (aten.where.self, (f(4) > 1, f(4), f(4))),
    "clamp": (aten.clamp.default, (f(4), 0.2, 0.8)),
    "gelu": (aten.gelu.default, (f(4, 6),)),
    "gelu backward": (aten.gelu_backward.default, (f(4, 6), f(4, 6))),
    "silu": (aten.silu.default, (f(4, 6),)),
    "sigmoid": (aten.sigmoid.default, (f(4, 6),)),
    "threshold backward": (aten.threshold_backward.default, (f(4, 6), f(4, 6), 0)),
    "mm": (aten.mm.default, (f(4, 6), f(6, 3))),
    "bmm": (aten.bmm.default, (f(2, 4, 6), f(2, 6, 3))),
    "addmm": (aten.addmm.default, (f(3), f(4, 6), f(3, 6).t())),
    "softmax": (aten._softmax.default, (f(4, 6), -1, False)),
    "log softmax": (aten._log_softmax.default, (f(4, 6), 1, False)),
    "log softmax backward": (aten._log_softmax_backward_data.default, (f(4, 6), f(4, 6), 1, torch.float32)),
    "nll loss": (aten.nll_loss_forward.default, (f(4, 6), i(6, 4), None, 1, -100)),
    "nll loss backward": (
        aten.nll_loss_backward.default,
        (f(), f(4, 6), i(6, 4), None, 1, -100, torch.tensor(4.0)),
    ),
    "layer norm": (aten.native_layer_norm.default, (f(4, 6), [6], f(6), f(6), 1e-5)),
    "layer norm backward": (
        aten.native_layer_norm_backward.default,
        (f(4, 6), f(4, 6), [6], f(4, 1), f(4, 1), f(6), f(6), [True, True, True]),
    ),
    "group norm": (aten.native_group_norm.default, (f(2, 6, 5), f(6), f(6), 2, 6, 5, 3, 1e-5)),
    "batch norm": (aten.native_batch_norm.default, (f(2, 3, 4, 4), f(3), f(3), f(3), f(3), True, 0.1, 1e-5)),
    "batch norm backward": (
        aten.native_batch_norm_backward.default,
        (f(2, 3, 4, 4), f(2, 3, 4, 4), f(3), f(3), f(3), f(3), f(3), True, 1e-5, [True, True, True]),
    ),
    "convolution": (
        aten.convolution.default,
        (f(2, 3, 8, 8), f(4, 3, 3, 3), f(4), [2, 2], [1, 1], [1, 1], False, [0, 0], 1),
    ),
    "convolution backward": (
        aten.convolution_backward.default,
        (
            f(2, 4, 4, 4),
            f(2, 3, 8, 8),
            f(4, 3, 3, 3),
            [4],
            [2, 2],
            [1, 1],
            [1, 1],
            False,
            [0, 0],
            1,
            [True] * 3,
        ),
    ),
    "transposed convolution backward": (
        aten.convolution_backward.default,
        (f(1, 3, 6), f(1, 3, 4), f(3, 3, 3), [3], [1], [0], [1], True, [0], 1, [True] * 3),
    ),
    "max pool": (aten.max_pool2d_with_indices.default, (f(2, 3, 8, 8), [3, 3], [2, 2], [1, 1])),
    "max pool backward": (
        aten.max_pool2d_with_indices_backward.default,
        (f(2, 3, 4, 4), f(2, 3, 8, 8), [3, 3], [2, 2], [1, 1], [1, 1], False, i(64, 2, 3, 4, 4)),
    ),
    "average pool": (aten.avg_pool2d.default, (f(2, 3, 8, 8), [2, 2], [2, 2])),
    "average pool backward": (
        aten.avg_pool2d_backward.default,
        (f(2, 3, 4, 4), f(2, 3, 8, 8), [2, 2], [2, 2], [0, 0], False, True, None),
    ),
    "adaptive pool": (aten._adaptive_avg_pool2d.default, (f(2, 3, 7, 7), [3, 2])),
    "adaptive pool backward": (aten._adaptive_avg_pool2d_backward.default, (f(2, 3, 3, 2), f(2, 3, 7, 7))),
    "upsample backward": (
        aten.upsample_bilinear2d_backward.default,
        (f(1, 2, 8, 8), [8, 8], [1, 2, 4, 4], False),
    ),
    "flash attention": (
        aten._scaled_dot_product_flash_attention_for_cpu.default,
        (f(2, 4, 8, 16), f(2, 2, 8, 16), f(2, 2, 8, 16), 0.0, True),
    ),
    "flash attention backward": (
        aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
        (*(f(2, 4, 8, 16) for _ in range(5)), f(2, 4, 8), 0.0, True),
    ),
    "embedding": (aten.embedding.default, (f(10, 6), i(10, 2, 3))),
    "embedding backward": (aten.embedding_dense_backward.default, (f(2, 3, 6), i(10, 2, 3), 10, -1, False)),
    "dropout": (aten.native_dropout.default, (f(4, 6), 0.5, True)),
    "bernoulli": (aten.bernoulli_.float, (f(4, 6), 0.5)),
    "uniform": (aten.uniform_.default, (f(4, 6),)),
    "normal": (aten.normal_.default, (f(4, 6),)),
    "sum": (aten.sum.dim_IntList, (f(4, 6), [0], True)),
    "mean": (aten.mean.dim, (f(4, 6), [1])),
    "amax of a scalar": (aten.amax.default, (f(), [0], True)),
    "argmax": (aten.argmax.default, (f(4, 6), 1)),
    "vector norm": (aten.linalg_vector_norm.default, (f(4, 6),)),
    "cumsum": (aten.cumsum.default, (f(4, 6), 1)),
    "cumprod": (aten.cumprod.default, (f(4, 6), 1)),
    "sort": (aten.sort.default, (f(4, 6),)),
    "stable sort": (aten.sort.stable, (f(4, 6),), {"stable": True, "dim": 1}),
    "histogram of integers": (aten.histc.default, (i(6, 20), 6, 0, 5)),
    "topk": (aten.topk.default, (f(4, 6), 2)),
    "median": (aten.median.dim, (f(4, 7), 1)),
    "gather": (aten.gather.default, (f(4, 6), 1, i(6, 4, 2))),
    "scatter add": (aten.scatter_add.default, (f(4, 6), 1, i(6, 4, 2), f(4, 2))),
    "index": (aten.index.Tensor, (f(4, 6), [i(4, 3)])),
    "index put": (aten.index_put.default, (f(4, 6), [i(4, 3)], f(3, 6), True)),
    "index select": (aten.index_select.default, (f(4, 6), 0, i(4, 3))),
    "cat": (aten.cat.default, ([f(4, 2), f(4, 3)], 1)),
    "stack of scalars": (aten.stack.default, ([f(), f()],)),
    "split": (aten.split.Tensor, (f(4, 6), 2, 1)),
    "slice backward": (aten.slice_backward.default, (f(4, 2), [4, 6], 1, -2, 2**63 - 1, 1)),
    "select backward": (aten.select_backward.default, (f(4), [4, 6], 1, -1)),
    "squeeze": (aten.squeeze.dims, (f(4, 1, 6, 1), [1, 3])),
    "diagonal": (aten.diagonal_copy.default, (f(4, 6), 1)),
    "as strided": (aten.as_strided_copy.default, (f(12), [3, 4], [1, 3])),
    "tril": (aten.tril.default, (f(4, 6),)),
    "zeros": (aten.zeros.default, ([4, 6],), {"dtype": torch.float32}),
    "arange": (aten.arange.default, (7,)),
    "cast": (aten._to_copy.default, (f(4, 6),), {"dtype": torch.bfloat16}),
    "double": (aten.mul.Tensor, (f(4).double(), f(4).double())),
    "half": (aten.mm.default, (f(4, 6).half(), f(6, 3).half())),
    "lstm cell": (aten._thnn_fused_lstm_cell.default, (f(2, 12), f(2, 12), f(2, 3), f(12), f(12))),
    "gru cell": (aten._thnn_fused_gru_cell.default, (f(2, 9), f(2, 9), f(2, 3), f(9), f(9))),
    "foreach add": (aten._foreach_add.List, ([f(4), f(3)], [f(4), f(3)])),
    "foreach multiply in place": (aten._foreach_mul_.Scalar, ([f(4), f(3)], 0.9)),
    "foreach addcdiv": (aten._foreach_addcdiv.ScalarList, ([f(4)], [f(4)], [f(4)], [0.5])),
    "foreach norm": (aten._foreach_norm.Scalar, ([f(4), f(3)],)),
}
NOT_ON_CPU = ("lstm cell", "gru cell", "histogram of integers")


def written_arguments(target, args, kwargs):
    """Tensors that the operator writes: their new values are results."""
    written = []
    for index, argument in enumerate(target._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[index] if index < len(args) else kwargs[argument.name]
            written += pytree.tree_leaves(value)
    return written


def expected_shapes(target, args, kwargs):
    args, kwargs = pytree.tree_map(
        lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs)
    )
    results = pytree.tree_leaves(target(*args, **kwargs))
    seen: dict[int, tuple[int, ...]] = {}
    for result in [*results, *written_arguments(target, args, kwargs)]:
        if isinstance(result, torch.Tensor):
            seen[id(result)] = tuple(result.shape)
    return sorted(seen.values())


@pytest.mark.parametrize("name", CALLS)
def test_results_have_the_operators_shapes_and_nothing_is_left_unlowered(name):
    target, args, *rest = CALLS[name]
    kwargs = rest[0] if rest else {}
    module = lower_operation(target.name(), describe_call(target, args, kwargs))
    shapes = sorted(module.values[result].type.shape for result in module.results)
    if name not in NOT_ON_CPU:
        assert shapes == expected_shapes(target, args, kwargs)
    assert shapes
    assert module.warnings == ()
    assert [row.name for row in module.framework] == [target._schema.name]
    assert all(operation.framework == (0,) for operation in module.operations)


def test_an_operator_without_a_lowering_becomes_a_custom_call_with_its_shapes():
    module = lower_operation("aten::linalg_inv_ex", (describe(f(5, 5)), False))
    (operation,) = module.operations
    assert operation.opcode == "custom_call"
    assert operation.attributes["call_target_name"] == "aten::linalg_inv_ex"
    assert [str(module.values[value].type) for value in operation.operands] == ["f32[5,5]"]
    assert [str(module.values[value].type) for value in module.results] == ["f32[5,5]", "i32[]"]
    assert "aten::linalg_inv_ex has no native lowering" in module.warnings[0]


def test_tracing_failures_are_not_logged(caplog):
    module = lower_operation("aten::bincount", (describe(torch.zeros(5, dtype=torch.int64)), None, 0))
    assert module.warnings
    assert caplog.records == []


def test_an_operator_whose_result_has_no_largest_size_becomes_a_custom_call():
    module = lower_operation("aten::bincount", (describe(torch.zeros(5, dtype=torch.int64)), None, 0))
    assert [operation.opcode for operation in module.operations] == ["custom_call"]
    assert module.warnings


def test_a_type_that_mlir_lacks_becomes_a_custom_call_too():
    module = lower_operation("aten::hash_tensor", (describe(f(3)), ("list", ()), False, 0))
    assert [operation.opcode for operation in module.operations] == ["custom_call"]
    assert [str(module.values[value].type) for value in module.results] == ["ui64[]"]


def test_a_transposed_operand_is_its_memory_and_a_transpose():
    module = lower_operation("aten::mm", (describe(f(4, 6)), describe(f(3, 6).t())))
    assert [str(module.values[value].type) for value in module.parameters] == ["f32[4,6]", "f32[3,6]"]
    assert [operation.opcode for operation in module.operations] == ["transpose", "dot_general"]


def test_a_broadcast_operand_is_read_once():
    module = lower_operation("aten::mm", (describe(f(4, 1).expand(4, 6)), describe(f(6, 3))))
    assert str(module.values[module.parameters[0]].type) == "f32[4,1]"


def test_an_elementwise_operator_runs_over_transposed_memory_as_it_lies():
    module = lower_operation("aten::relu", (describe(f(4, 6).t()),))
    assert [str(module.values[value].type) for value in module.parameters] == ["f32[4,6]"]
    assert "transpose" not in [operation.opcode for operation in module.operations]


@pytest.mark.parametrize(
    ("target", "args"), [(aten.clone.default, (f(4, 6),)), (aten.copy_.default, (f(4, 6), f(4, 6)))]
)
def test_a_result_that_is_an_operand_is_copied(target, args):
    module = lower_operation(target.name(), describe_call(target, args, {}))
    (operation,) = module.operations
    assert (operation.opcode, operation.framework) == ("copy", (0,))
    assert operation.operands == module.parameters[-1:]
    assert module.results == operation.results


def test_what_an_operator_writes_may_take_over_its_memory():
    calls = {
        aten.index_copy_.default: (f(64, 6), 0, i(64, 3), f(3, 6)),
        aten.add_.Tensor: (f(4, 6), f(4, 6)),
    }
    for target, args in calls.items():
        assert lower_operation(target.name(), describe_call(target, args, {})).aliases == ((0, 0),)
    assert lower_operation("aten::add.Tensor", (describe(f(4)), describe(f(4)), 1)).aliases == ()


def test_a_wrapped_number_is_not_a_parameter():
    module = lower_operation("aten::mul.Tensor", (describe(f(4)), ("number_tensor", "float64")))
    assert len(module.parameters) == 1


def test_an_empty_result_takes_no_operations():
    module = lower_operation("aten::add.Tensor", (describe(f(0, 4)), describe(f(4)), 1))
    assert (module.operations, module.results) == ((), ())


def test_an_unknown_operator_is_named():
    with pytest.raises(UnknownOperator, match="no operator aten::no_such_thing"):
        lower_operation("aten::no_such_thing", ())


def test_unscaling_gradients_lowers_natively_for_each_tensor():
    gradients = [torch.empty(8, 4), torch.empty(4)]
    target = torch.ops.aten._amp_foreach_non_finite_check_and_unscale_.default
    arguments = describe_call(target, (gradients, torch.zeros(1), torch.ones(1)), {})
    module = lower_operation("aten::_amp_foreach_non_finite_check_and_unscale_", arguments)
    assert module.warnings == ()
    assert [operation.opcode for operation in module.operations].count("multiply") >= len(gradients)


@pytest.mark.parametrize(
    ("name", "arguments"), [("zero_", ()), ("fill_.Scalar", (3,)), ("full_like", (3, *[None] * 5))]
)
def test_filling_bytes_lowers_natively(name, arguments):
    module = lower_operation(f"aten::{name}", (describe(torch.empty(8, 4, dtype=torch.uint8)), *arguments))
    assert module.warnings == ()
    assert [str(module.values[value].type) for value in module.results] == ["ui8[8,4]"]
    constants = [op.attributes["value"] for op in module.operations if op.opcode == "constant"]
    assert constants == [arguments[0] if arguments else 0]


@pytest.mark.parametrize(("overload", "bounds"), [("", ()), (".to", (10,)), (".from", (2, 10))])
def test_random_integers_lower_natively(overload, bounds):
    arguments = (describe(torch.empty(64, dtype=torch.int64)), *bounds, None)
    module = lower_operation(f"aten::random_{overload}", arguments)
    assert module.warnings == ()
    assert "rng" in [operation.opcode for operation in module.operations]


def test_gradients_of_attention_are_left_by_tokens():
    """As the device leaves them in memory, whatever the order of queries."""
    target = torch.ops.aten._scaled_dot_product_fused_attention_overrideable_backward.default
    states, place = f(2, 4, 8, 16), i(2)
    operands = (*(states for _ in range(4)), None, [True] * 3 + [False], states, f(2, 4, 8))
    arguments = describe_call(target, (*operands, place, place, 8, 8, 0.0, False, place, place), {})
    module = lower_operation(target.name(), arguments)
    assert [module.shape_of(value) for value in module.results] == [(2, 8, 4, 16)] * 3


def test_results_that_no_argument_gives_a_type_have_the_default_one_of_the_moment():
    quotient = describe_call(aten.div.Tensor, (i(9, 4, 6), i(9, 4, 6)), {})

    def result():
        module = lower_operation("aten::div.Tensor", quotient)
        return module.values[module.results[0]].type.dtype

    assert result() == "f32"
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert result() == "bf16"
    finally:
        torch.set_default_dtype(torch.float32)
