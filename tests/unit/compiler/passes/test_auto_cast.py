"""What `--auto-cast` narrows, before and after."""

from dataclasses import replace

import pytest

from neuron_tools.compiler.hlo import Module, Operation, Region, TensorType, Value
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.compiler.passes.auto_cast import auto_cast

NUMBERS = {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (0,)}


def module():
    """tanh(x @ w) summed over rows; x is f32, w is f32."""
    square, row, scalar = (TensorType(shape, "f32") for shape in ((8, 8), (8,), ()))
    types = (square, square, square, square, scalar, row, scalar, scalar, scalar)
    body = Region((6, 7), (Operation("add", (6, 7), (8,)),), (8,))
    return Module(
        name="m",
        values=tuple(Value(number, type_) for number, type_ in enumerate(types)),
        parameters=(0, 1),
        operations=(
            Operation("dot_general", (0, 1), (2,), {"dot_dimension_numbers": NUMBERS}),
            Operation("tanh", (2,), (3,)),
            Operation("constant", (), (4,), {"value": 0.0}),
            Operation("reduce", (3, 4), (5,), {"dimensions": (1,)}, (), (body,)),
        ),
        results=(5,),
        framework=(),
    )


def dtypes(found, opcode):
    operation = next(operation for operation in found.operations if operation.opcode == opcode)
    ids = (*operation.operands, *operation.results)
    return [found.values[value].type.dtype for value in ids]


def cast(**options):
    return auto_cast(module(), CompilerOptions(**options))


def test_none_changes_nothing():
    before = module()
    assert auto_cast(before, CompilerOptions()) is before


@pytest.mark.parametrize("narrow", ["bf16", "f16", "f8E4M3FN"])
def test_matmult_narrows_the_operands_of_products_and_keeps_their_sums(narrow):
    found = cast(auto_cast="matmult", auto_cast_type=narrow)
    assert [operation.opcode for operation in found.operations[:3]] == ["convert", "convert", "dot_general"]
    assert dtypes(found, "dot_general") == [narrow, narrow, "f32"]
    assert dtypes(found, "tanh") == ["f32", "f32"]


def test_an_operand_used_twice_is_converted_once():
    base = module()
    square = Operation("dot_general", (0, 0), (2,), {"dot_dimension_numbers": NUMBERS})
    twice = Module(base.name, base.values, base.parameters, (square,), (2,), ())
    found = auto_cast(twice, CompilerOptions(auto_cast="matmult"))
    assert [operation.opcode for operation in found.operations] == ["convert", "dot_general"]


def test_all_narrows_everything_between_parameters_and_results():
    found = cast(auto_cast="all")
    assert dtypes(found, "dot_general") == ["bf16", "bf16", "bf16"]
    assert dtypes(found, "tanh") == ["bf16", "bf16"]
    reduction = next(operation for operation in found.operations if operation.opcode == "reduce")
    inner = reduction.regions[0].operations[0]
    assert {found.values[value].type.dtype for value in (*inner.operands, *inner.results)} == {"bf16"}
    assert [found.values[value].type.dtype for value in (*found.parameters, *found.results)] == ["f32"] * 3


def weighed(*uses):
    """x @ transpose(w), with w a weight; further operations may use it."""
    square = TensorType((8, 8), "f32")
    operations = (
        Operation("transpose", (1,), (2,), {"permutation": (1, 0)}),
        Operation("dot_general", (0, 2), (3,), {"dot_dimension_numbers": NUMBERS}),
        *uses,
    )
    values = tuple(Value(number, square) for number in range(5))
    kinds = ("input", "weight")
    return Module("m", values, (0, 1), operations, (3,), (), parameter_kinds=kinds)


def test_weights_in_the_artifact_are_cast_when_it_is_compiled():
    found = auto_cast(weighed(), CompilerOptions(auto_cast="matmult", inline_weights=True))
    assert dtypes(found, "transpose") == ["bf16", "bf16"]
    assert [operation.opcode for operation in found.operations] == ["transpose", "convert", "dot_general"]


def test_a_weight_with_another_use_is_cast_in_front_of_what_turns_it():
    shared = weighed(Operation("tanh", (1,), (4,)))
    found = auto_cast(shared, CompilerOptions(auto_cast="matmult", inline_weights=True))
    assert dtypes(found, "transpose") == ["bf16", "bf16"]
    assert dtypes(found, "dot_general")[:2] == ["bf16", "bf16"]


def test_all_weights_in_the_artifact_are_narrow_where_everything_is_cast():
    found = auto_cast(weighed(), CompilerOptions(auto_cast="all", inline_weights=True))
    assert [found.values[value].type.dtype for value in found.parameters] == ["f32", "bf16"]


def padded_or_joined(opcode, *uses):
    """x and y put together, times w; further operations may read what was put together."""
    square, scalar = TensorType((8, 8), "f32"), TensorType((), "f32")
    operands = (0, 2) if opcode == "pad" else (0, 0)
    operations = (
        Operation("constant", (), (2,), {"value": 0.0}),
        Operation(opcode, operands, (3,)),
        Operation("dot_general", (3, 1), (4,), {"dot_dimension_numbers": NUMBERS}),
        *uses,
    )
    values = tuple(Value(number, scalar if number == 2 else square) for number in range(6))
    return Module("m", values, (0, 1), operations, (4, *(value for use in uses for value in use.results)), ())


@pytest.mark.parametrize("opcode", ["pad", "concatenate"])
def test_what_only_a_product_reads_is_put_together_narrow(opcode):
    found = auto_cast(padded_or_joined(opcode), CompilerOptions(auto_cast="matmult"))
    assert set(dtypes(found, opcode)) == {"bf16"}


@pytest.mark.parametrize("opcode", ["pad", "concatenate"])
def test_what_nobody_reads_is_no_hindrance(opcode):
    whole = padded_or_joined(opcode)
    product = replace(whole.operations[2], operands=(0, 1))
    found = auto_cast(
        replace(whole, operations=(*whole.operations[:2], product)), CompilerOptions(auto_cast="matmult")
    )
    assert opcode not in [operation.opcode for operation in found.operations]
    assert dtypes(found, "dot_general") == ["bf16", "bf16", "f32"]


@pytest.mark.parametrize("opcode", ["pad", "concatenate"])
def test_what_others_read_too_is_put_together_once(opcode):
    found = auto_cast(
        padded_or_joined(opcode, Operation("tanh", (3,), (5,))), CompilerOptions(auto_cast="matmult")
    )
    assert [operation.opcode for operation in found.operations].count(opcode) == 1
    assert set(dtypes(found, opcode)) == {"f32"}


def test_values_looked_at_bit_by_bit_keep_their_type():
    base = module()
    bits = Value(9, TensorType((8, 8), "i32"))
    looking = Module(
        base.name,
        (*base.values, bits),
        (0,),
        (Operation("tanh", (0,), (2,)), Operation("bitcast_convert", (2,), (9,))),
        (9,),
        (),
    )
    found = auto_cast(looking, CompilerOptions(auto_cast="all"))
    assert dtypes(found, "bitcast_convert") == ["f32", "i32"]
