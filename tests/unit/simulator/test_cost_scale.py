import numpy as np

from benchmarks.simulator import pipelined_program
from neuron_tools import hardware
from neuron_tools.simulator import simulate
from neuron_tools.simulator.cost_scale import CostScale

CORE = hardware.get("trn2")
PROGRAM = pipelined_program(400)


def test_factors_of_one_change_nothing():
    scale = CostScale.unchanged(PROGRAM)
    assert scale.is_unchanged
    assert simulate(PROGRAM, CORE, scale=scale).duration_ps == simulate(PROGRAM, CORE).duration_ps


def test_free_transfers_and_free_instructions_save_time():
    base = simulate(PROGRAM, CORE).duration_ps
    unchanged = CostScale.unchanged(PROGRAM)
    without_dma = CostScale(unchanged.instructions, np.zeros(len(PROGRAM.dmas)))
    without_work = CostScale(np.zeros(len(PROGRAM.instructions)), unchanged.dmas)
    both = without_dma.times(without_work)
    durations = [
        simulate(PROGRAM, CORE, scale=scale).duration_ps for scale in (without_dma, without_work, both)
    ]
    assert durations[2] < min(durations[:2])
    assert max(durations[:2]) < base


def test_slower_rows_make_a_slower_program():
    scale = CostScale(np.full(len(PROGRAM.instructions), 2.0), np.full(len(PROGRAM.dmas), 2.0))
    base = simulate(PROGRAM, CORE).duration_ps
    assert 1.5 * base < simulate(PROGRAM, CORE, scale=scale).duration_ps < 2.1 * base
