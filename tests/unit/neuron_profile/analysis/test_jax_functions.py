"""What a person compiled with `jax.jit` is told from the operations that JAX runs one by one."""

from dataclasses import replace

import pytest

from neuron_profile.analysis.jax_functions import is_single_operation
from neuron_tools.records.program import Frame, FrameworkOperation
from tests.unit.neuron_profile.small_capture import elementwise, program


@pytest.mark.parametrize(
    ("name", "functions", "is_single"),
    [
        ("jit(multiply)/mul", ("forward", "<module>"), True),
        ("jit(_mean)/reduce_sum", ("<module>",), True),
        ("jit(forward)/mul", ("forward", "<module>"), False),
        ("jit(apply)/dot_general", ("Dense.__call__", "Module.apply", "<module>"), False),
        ("jit(<lambda>)/tanh", ("<lambda>", "<module>"), False),
        ("aten::mul", ("<module>",), False),
    ],
)
def test_a_function_stands_in_the_stack_of_its_operations(name, functions, is_single):
    stack = tuple(Frame("train.py", line, function) for line, function in enumerate(functions, 1))
    whole = replace(program([("mul", 1)], elementwise(1)), framework=(FrameworkOperation(name, stack=stack),))
    assert is_single_operation(whole) is is_single
