from neuron_tools.compiler.passes.register_arithmetic import address_by_register, register_values
from tests.unit.compiler.modules import function, module

TEXT = function(
    "%a: tensor<64x8xf32>, %i: tensor<i32>, %f: tensor<f32>",
    "tensor<1x8xf32>",
    "%one = stablehlo.constant dense<1> : tensor<i32>",
    "%j = stablehlo.add %i, %one : tensor<i32>",
    "%k = stablehlo.convert %f : (tensor<f32>) -> tensor<i32>",
    "%x = stablehlo.dynamic_slice %a, %j, %one, sizes = [1, 8] : "
    "(tensor<64x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>",
    "%y = stablehlo.dynamic_slice %a, %k, %one, sizes = [1, 8] : "
    "(tensor<64x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>",
    "%r = stablehlo.add %x, %y : tensor<1x8xf32>",
)


def test_integers_made_of_constants_and_parameters_are_held():
    found = module(TEXT)
    held = register_values(found, found.parameters)
    made = {found.operations[index].results[0]: index in (0, 1) for index in range(3)}
    assert {value for value in made if value in held} == {value for value in made if made[value]}


def test_only_addresses_in_registers_are_taken_off():
    slices = [op for op in address_by_register(module(TEXT)).operations if op.opcode == "dynamic_slice"]
    assert [len(operation.operands) for operation in slices] == [1, 3]
