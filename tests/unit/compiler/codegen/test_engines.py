from neuron_tools.compiler.codegen.engines import assign_engines, instruction_ns
from neuron_tools.compiler.codegen.selection import Micro
from neuron_tools.compiler.hlo import Operation
from neuron_tools.compiler.passes.fusion import Shape
from neuron_tools.simulator.program import Engine, Opcode
from tests.unit.compiler.modules import CORE

ADD = Operation("add", (), (0,))


def micro(*engines: Engine, opcode: Opcode = Opcode.TENSOR_TENSOR, shape: Shape = Shape.FULL) -> Micro:
    return Micro(opcode, engines, [], 0, shape, ADD)


def test_within_the_budget_the_first_engine_takes_everything():
    chosen = assign_engines([micro(Engine.VECTOR, Engine.GPSIMD)] * 3, CORE, 512, 1e9)
    assert set(chosen) == {Engine.VECTOR}


def test_beyond_the_budget_the_work_is_shared():
    chosen = assign_engines([micro(Engine.VECTOR, Engine.GPSIMD)] * 4, CORE, 2048, 0.0)
    assert set(chosen) == {Engine.VECTOR, Engine.GPSIMD}


def test_tiny_per_row_work_stays_on_the_first_engine():
    chosen = assign_engines([micro(Engine.VECTOR, Engine.GPSIMD, shape=Shape.ROW)] * 4, CORE, 2048, 0.0)
    assert set(chosen) == {Engine.VECTOR}


def test_longer_instructions_take_longer():
    short, long = (instruction_ns(CORE, Engine.SCALAR, Opcode.ACTIVATE, n) for n in (64, 4096))
    assert 0 < short < long
