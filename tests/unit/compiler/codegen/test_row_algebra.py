"""Scales and shifts by rows' numbers, composed: the same linear function in fewer instructions."""

from __future__ import annotations

from itertools import count

import pytest

from neuron_tools.compiler.codegen.level_joins import join_within_levels
from neuron_tools.compiler.codegen.micro import Micro, Selection
from neuron_tools.compiler.codegen.row_algebra import compose_sums, row_steps, scale_and_shift
from neuron_tools.compiler.hlo import Operation
from neuron_tools.compiler.passes.groups import Shape
from neuron_tools.records.program import Engine, Opcode

SOURCE = Operation("add", (), (0,))
EVERY = (Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD)
NUMBERS = {"m": 3.0, "r": 5.0, "w": 7.0, "b": 11.0, "x": 2.0, "g": 13.0}
FUNCTIONS = {
    "add": lambda left, right: left + right,
    "subtract": lambda left, right: left - right,
    "multiply": lambda left, right: left * right,
}


def temporaries():
    numbers = count(1)
    return lambda: ("temporary", next(numbers))


def micro(opcode, reads, writes, names=(), shape=Shape.FULL, **options):
    return Micro(opcode, EVERY, reads, writes, shape, SOURCE, scalar_operations=names, **options)


def scaled(data, writes, **steps):
    return micro(Opcode.TENSOR_SCALAR, [data, *steps.values()], writes, tuple(steps))


def computed(micros, values):
    """What instructions make of numbers: a scalar's operations one by one, then the second tensor's."""
    values = dict(values)
    for one in micros:
        if one.opcode is Opcode.SCALAR_TENSOR_TENSOR:
            first, second, number = (values[key] for key in one.reads)
            inner, outer = one.scalar_operations
            values[one.writes] = FUNCTIONS[outer](FUNCTIONS[inner](first, number), second)
        elif one.opcode is Opcode.TENSOR_TENSOR:
            values[one.writes] = FUNCTIONS[one.scalar_operations[-1]](*(values[key] for key in one.reads))
        else:
            result = values[one.reads[0]]
            for name, key in zip(one.scalar_operations, one.reads[1:]):
                result = FUNCTIONS[name](result, values[key])
            values[one.writes] = result
    return values


@pytest.mark.parametrize(
    "steps",
    [
        [("subtract", "m"), ("multiply", "r"), ("multiply", "w"), ("add", "b")],
        [("multiply", "r"), ("multiply", "w")],
        [("multiply", "r"), ("add", "b"), ("multiply", "w")],
    ],
)
def test_any_number_of_steps_is_one_scale_and_one_shift(steps):
    found, chain = scale_and_shift(steps, SOURCE, temporaries())
    values = computed(chain, NUMBERS)
    wanted = got = NUMBERS["x"]
    for name, key in steps:
        wanted = FUNCTIONS[name](wanted, NUMBERS[key])
    for name, key in found:
        got = FUNCTIONS[name](got, values[key])
    assert len(found) <= 2
    assert all(one.shape is Shape.ROW for one in chain)
    assert got == wanted


def selection(*micros, stored=("y",)):
    return Selection(micros=list(micros), stored=dict(enumerate(stored)))


def gradient():
    """(g - (x - m) * r - b) * w, and the sum of g * (x - m) that another pass takes."""
    return [
        scaled("x", "centered", subtract="m"),
        micro(Opcode.TENSOR_TENSOR, ["g", "centered"], "product"),
        micro(Opcode.TENSOR_REDUCE, ["product"], "sum", reduces="sum"),
        micro(Opcode.SCALAR_TENSOR_TENSOR, ["centered", "g", "r"], "total", ("multiply", "subtract")),
        micro(Opcode.TENSOR_SCALAR, ["total", "b", "w"], "y", ("subtract", "multiply")),
    ]


def whole(found):
    return [one.opcode for one in found.micros if one.shape is Shape.FULL]


def test_a_scaled_and_shifted_sum_of_two_tensors_takes_two_instructions():
    found = selection(*gradient()[:1], *gradient()[3:])
    before = computed(found.micros, NUMBERS)["y"]
    compose_sums(found, temporaries())
    assert abs(computed(found.micros, NUMBERS)["y"]) == abs(before)  # either is subtracted from the other
    assert whole(found) == [Opcode.TENSOR_SCALAR, Opcode.SCALAR_TENSOR_TENSOR]
    moved, added = (one for one in found.micros if one.shape is Shape.FULL)
    assert moved.reads[0] == "x"
    assert (added.reads[:2], added.writes) == (["g", moved.writes], "y")


def test_a_sum_that_is_stored_too_stays():
    found = selection(*gradient(), stored=("y", "total"))
    compose_sums(found, temporaries())
    assert found.micros[3].writes == "total"


def test_numbers_that_are_not_of_rows_are_left_alone():
    constant = micro(Opcode.TENSOR_SCALAR, ["total"], "y", ("multiply",))
    found = selection(*gradient()[:4], constant)
    compose_sums(found, temporaries())
    assert len(found.micros) == 5


def test_a_pass_that_alone_reads_a_scaled_tensor_scales_it_itself():
    found = selection(*gradient())
    found.micros[3].level = found.micros[4].level = 1
    found.level_of = {"sum": 1, "total": 1, "y": 1}
    join_within_levels(found)
    assert whole(found)[:2] == [Opcode.TENSOR_SCALAR, Opcode.SCALAR_TENSOR_TENSOR]
    assert found.micros[1].reads == ["x", "g", "m"]
    assert found.micros[0].writes == "centered"  # the other pass reads it


def test_what_two_instructions_of_a_pass_read_is_scaled_once():
    both = micro(Opcode.TENSOR_TENSOR, ["x", "centered"], "z")
    found = selection(*gradient()[:3], both, stored=("sum", "z"))
    join_within_levels(found)
    assert Opcode.SCALAR_TENSOR_TENSOR not in whole(found)


def test_scales_that_nobody_reads_any_more_are_left_out():
    found = selection(*gradient())
    compose_sums(found, temporaries())
    join_within_levels(found)
    assert all(not row_steps(one) or one.writes != "centered" for one in found.micros)
