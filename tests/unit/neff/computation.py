"""A small compiled computation, with a source line of this file."""

from pathlib import Path

from neuron_tools import hardware
from neuron_tools.compiler import compile_module
from neuron_tools.compiler.hlo import Module, Operation, TensorType, Value
from neuron_tools.neff import Neff
from neuron_tools.neff.sources import source_lines
from neuron_tools.records.program import Frame, FrameworkOperation

CONTRACTED = {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (0,)}
FIRST_LINE = Path(__file__).read_text().splitlines()[0]
SQUARE = TensorType((64, 64), "f32")


def module():
    return Module(
        name="product",
        values=tuple(Value(number, SQUARE) for number in range(4)),
        parameters=(0, 1),
        operations=(
            Operation(
                "dot_general",
                (0, 1),
                (2,),
                {
                    "dot_dimension_numbers": {
                        "lhs_contracting_dimensions": (1,),
                        "rhs_contracting_dimensions": (0,),
                    }
                },
                (0,),
            ),
            Operation("tanh", (2,), (3,), {}, (0,)),
        ),
        results=(3,),
        framework=(FrameworkOperation("aten::mm", "Model.head", "Linear", (Frame(__file__, 1, "forward"),)),),
        parameter_kinds=("input", "weight"),
        parameter_names=("x", "head.weight"),
    )


def program():
    return compile_module(module(), hardware.get("trn2"))


def artifact():
    made = program()
    return Neff(made, "module {}", {"auto_cast": "none"}, source_lines(made), {"model.pt": b"\0\1"})
