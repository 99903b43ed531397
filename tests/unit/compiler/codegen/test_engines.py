import pytest

from neuron_tools import hardware
from neuron_tools.compiler.codegen.engines import (
    TileCosts,
    assign_engines,
    busiest_ns,
    instruction_ns,
    quickest_engines,
)
from neuron_tools.compiler.codegen.micro import Micro
from neuron_tools.compiler.hlo import Operation
from neuron_tools.compiler.passes.groups import Shape
from neuron_tools.records.program import DType, Engine, Opcode
from tests.unit.compiler.modules import CORE

ADD = Operation("add", (), (0,))


def micro(*engines: Engine, opcode: Opcode = Opcode.TENSOR_TENSOR, shape: Shape = Shape.FULL) -> Micro:
    return Micro(opcode, engines, [], 0, shape, ADD)


def costs(elements: int, dtype: DType = DType.F32) -> TileCosts:
    return TileCosts(CORE, elements, lambda _: dtype)


def test_within_the_budget_the_first_engine_takes_everything():
    chosen = [
        engines[0] for engines in assign_engines([micro(Engine.VECTOR, Engine.GPSIMD)] * 3, costs(512), [1e9])
    ]
    assert set(chosen) == {Engine.VECTOR}


def test_beyond_the_budget_the_work_is_shared():
    chosen = [
        engines[0]
        for engines in assign_engines([micro(Engine.VECTOR, Engine.GPSIMD)] * 4, costs(2048), [0.0])
    ]
    assert set(chosen) == {Engine.VECTOR, Engine.GPSIMD}


def test_tiny_per_row_work_stays_on_the_first_engine():
    chosen = [
        engines[0]
        for engines in assign_engines(
            [micro(Engine.VECTOR, Engine.GPSIMD, shape=Shape.ROW)] * 4, costs(2048), [0.0]
        )
    ]
    assert set(chosen) == {Engine.VECTOR}


def test_longer_instructions_take_longer():
    short, long = (instruction_ns(CORE, Engine.SCALAR, Opcode.ACTIVATE, n) for n in (64, 4096))
    assert 0 < short < long


def test_tiles_in_turn_use_different_engines_where_one_is_too_slow():
    body = [micro(Engine.VECTOR, Engine.SCALAR, opcode=Opcode.TENSOR_SCALAR)] * 3
    chosen = assign_engines(body, costs(4096), [0.0], phases=4)
    assert all(len(engines) == 4 for engines in chosen)
    load = {
        engine: sum(
            instruction_ns(CORE, engine, Opcode.TENSOR_SCALAR, 4096)
            for one in chosen
            for e in one
            if e is engine
        )
        for engine in (Engine.VECTOR, Engine.SCALAR)
    }
    whole = 3 * 4 * instruction_ns(CORE, Engine.VECTOR, Opcode.TENSOR_SCALAR, 4096)
    assert max(load.values()) < 0.75 * whole


def test_gpsimd_is_no_help_while_the_vector_engine_holds_their_port():
    body = [micro(Engine.VECTOR, Engine.GPSIMD, opcode=Opcode.TENSOR_SCALAR)] * 4
    chosen = assign_engines(body, costs(4096, DType.BF16), [0.0], phases=4)
    assert {engine for engines in chosen for engine in engines} == {Engine.VECTOR}


def test_few_tiles_take_the_engine_that_is_done_first():
    body = [micro(Engine.SCALAR, Engine.VECTOR, opcode=Opcode.BN_STATS), micro(Engine.GPSIMD, Engine.VECTOR)]
    for instruction, chosen in zip(body, quickest_engines(body, costs(768))):
        times = {
            engine: instruction_ns(CORE, engine, instruction.opcode, 768, DType.F32)
            for engine in instruction.engines
        }
        assert len(chosen) == 1
        assert times[chosen[0]] == min(times.values())


def test_a_second_tile_takes_an_engine_that_the_first_leaves_free():
    body = [micro(Engine.GPSIMD, Engine.VECTOR, opcode=Opcode.TENSOR_TENSOR)]
    (one,), (two,) = (quickest_engines(body, costs(768), tiles) for tiles in (1, 2))
    assert len(one) == 1
    assert set(two) == {Engine.GPSIMD, Engine.VECTOR}


def test_each_pass_over_the_columns_has_room_of_its_own():
    """Statistics, then a scale: what fills the Vector engine in one pass leaves it free in the other."""
    body = [
        micro(Engine.VECTOR, Engine.SCALAR, opcode=Opcode.BN_STATS),
        micro(Engine.VECTOR, Engine.SCALAR, opcode=Opcode.TENSOR_SCALAR),
    ]
    budget = instruction_ns(CORE, Engine.VECTOR, Opcode.BN_STATS, 4096)
    together = assign_engines(body, costs(4096), [budget])
    apart = assign_engines(body, costs(4096), [budget, budget], levels_of=lambda one: (body.index(one),))
    assert together == ((Engine.VECTOR,), (Engine.SCALAR,))
    assert apart == ((Engine.VECTOR,), (Engine.VECTOR,))


def test_tiles_of_each_engine_are_spread_evenly():
    body = [micro(Engine.VECTOR, Engine.SCALAR, opcode=Opcode.TENSOR_SCALAR)]
    ((*chosen,),) = assign_engines(body, costs(4096), [0.0], phases=8)
    shares = [chosen[place : place + 4].count(Engine.SCALAR) for place in range(5)]
    assert max(shares) - min(shares) <= 1


def test_each_row_of_a_partition_costs_an_instruction_where_its_number_is_a_scalar():
    body = [micro(Engine.VECTOR), micro(Engine.VECTOR)]
    body[0].by_row = True
    times = [busiest_ns([one], [(Engine.VECTOR,)], TileCosts(CORE, 512, rows=4)) for one in body]
    parts, whole = (instruction_ns(CORE, Engine.VECTOR, body[0].opcode, count) for count in (128, 512))
    assert times == [4 * parts, whole]


@pytest.mark.parametrize(("target", "joined"), [("trn1", sum), ("trn2", max)])
def test_two_engines_that_share_a_port_are_as_busy_as_both_together(target, joined):
    body, tile = [micro(Engine.VECTOR), micro(Engine.GPSIMD)], TileCosts(hardware.get(target), 512)
    alone = [busiest_ns([one], [one.engines], tile) for one in body]
    assert busiest_ns(body, [one.engines for one in body], tile) == joined(alone)
