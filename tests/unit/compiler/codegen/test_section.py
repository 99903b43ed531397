import numpy as np
import pytest

from neuron_tools.compiler.codegen import repeat
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.compiler.passes.repetition import Repetition, Window
from neuron_tools.records.program import Memory, Opcode, TensorKind
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import CORE, compiled, layers, moved, opcodes, tile_races

BLOCKS = 4
COPIED = CompilerOptions(copied_from=0, keep_on_chip=False)
NAMES = tuple(f"block{index}" for index in range(BLOCKS))


@pytest.fixture
def generated_one_by_one(monkeypatch):
    whole = lambda plan: (Repetition((Window(plan.groups),)),)  # noqa: E731
    monkeypatch.setattr(repeat, "find_repetitions", whole)
    return compiled(layers(BLOCKS), names=NAMES, options=COPIED)


@pytest.fixture
def copied():
    return compiled(layers(BLOCKS), names=NAMES, options=COPIED)


def test_copies_do_what_code_generated_in_place_does(copied, generated_one_by_one):
    assert opcodes(copied) == opcodes(generated_one_by_one)
    work = [
        int((program.instructions["opcode"] != Opcode.ACT_TABLE_LOAD).sum())
        for program in (copied, generated_one_by_one)
    ]
    assert work[0] == work[1]
    for way in ((Memory.HBM, Memory.SBUF), (Memory.SBUF, Memory.HBM)):
        assert moved(copied, *way) == moved(generated_one_by_one, *way)
    times = [simulate(program, CORE).duration_ps for program in (copied, generated_one_by_one)]
    assert times[0] == pytest.approx(times[1], rel=0.25)


def test_no_copy_overwrites_memory_that_another_still_uses(copied):
    assert tile_races(copied) == 0


def test_every_copy_names_its_own_framework_row_and_weights(copied):
    assert len({operation.name for operation in copied.hlo}) == len(copied.hlo)
    rows = copied.instructions["hlo"]
    for row in range(BLOCKS):
        mine = [index for index, operation in enumerate(copied.hlo) if operation.framework == (row,)]
        assert np.isin(rows, mine).sum() * BLOCKS == len(rows)
    weights = {row for row, tensor in enumerate(copied.tensors) if tensor.kind is TensorKind.INPUT}
    assert (
        weights == set(np.unique(copied.dmas["tensor"][copied.dmas["source_memory"] == Memory.HBM])) & weights
    )


def test_copies_wait_for_the_copy_before(copied):
    simulation = simulate(copied, CORE)
    begins = [
        simulation.start_ps[np.isin(copied.instructions["hlo"], mine)].max()
        for mine in (
            [i for i, op in enumerate(copied.hlo) if op.framework == (row,)] for row in range(BLOCKS)
        )
    ]
    assert begins == sorted(begins)


def test_memory_that_only_one_copy_reads_is_used_again():
    few, many = (compiled(layers(count), names=NAMES * 3) for count in (3, 9))
    kinds = [sum(t.kind is TensorKind.INTERMEDIATE for t in program.tensors) for program in (few, many)]
    assert kinds[1] <= kinds[0] + 6
