import dataclasses

import numpy as np
import pytest

from neuron_tools.capture.template import (
    engine_titles,
    make_template,
    opcode_names,
    purpose_names,
    queue_kind_names,
)
from tests.unit.capture.programs import fused_executable, fused_graph


def test_times_are_rounded_down_to_nanoseconds():
    template = make_template(fused_executable())
    assert template.instructions.start_ns.tolist() == [0, 2_000, 2_300, 2_500]
    assert template.instructions.end_ns.tolist() == [50, 2_250, 2_450, 2_550]
    assert template.wait_ns.tolist() == [0, 2_000, 2_300, 2_440]
    assert template.dmas.start_ns.tolist() == [1_000, 3_500]


def test_levels_cover_what_is_under_them_until_what_waited_for_it_begins():
    template = make_template(fused_executable())
    assert (template.hlo.start_ns.tolist(), template.hlo.end_ns.tolist()) == (
        [0, 2_500, -1],
        [2_500, 5_000, -1],
    )
    assert template.framework.start_ns.tolist() == [0, 2_500, -1]
    assert template.framework.end_ns.tolist() == [2_500, 5_000, -1]
    assert template.hlo_rows.tolist() == template.framework_rows.tolist() == [0, 1]
    assert template.hlo_framework.tolist() == [0, 1, 1]


@pytest.mark.parametrize(("cause", "end_ns"), [(2, 2_500), (-2, 2_500), (-1, 2_450)])
def test_an_operation_lasts_until_its_end_is_seen(cause, end_ns):
    """An instruction or a transfer of the first operation releases the second; or nothing does."""
    executable = fused_executable()
    causes = np.array([-1, -1, -1, cause], np.int32)
    simulation = dataclasses.replace(executable.simulation, wait_cause=causes)
    template = make_template(dataclasses.replace(executable, simulation=simulation))
    assert template.hlo.end_ns.tolist() == [end_ns, 5_000, -1]


def test_what_was_fused_into_another_follows_one_another_in_its_time():
    executable = fused_executable()
    fused = dataclasses.replace(executable.program.hlo[0], framework=(1, 2, 0), shares=(0.5, 0.3, 0.2))
    program = dataclasses.replace(executable.program, hlo=(fused, *executable.program.hlo[1:]))
    template = make_template(dataclasses.replace(executable, program=program))
    # 1 is the one that both HLO operations belong to; 0 comes before it in the program, 2 behind.
    assert template.framework.start_ns.tolist() == [0, 0, 1_750]
    assert template.framework.end_ns.tolist() == [500, 5_000, 2_500]
    assert template.framework_rows.tolist() == [0, 1, 2]


def test_each_dma_knows_the_instruction_that_triggers_it():
    assert make_template(fused_executable()).dma_instruction.tolist() == [0, 3]


def test_instructions_of_no_hlo_operation_cover_nothing():
    executable = fused_executable()
    instructions, dmas = executable.program.instructions.copy(), executable.program.dmas.copy()
    instructions["hlo"], dmas["hlo"] = -1, -1
    program = dataclasses.replace(executable.program, instructions=instructions, dmas=dmas)
    template = make_template(dataclasses.replace(executable, program=program))
    assert template.hlo_rows.tolist() == template.framework_rows.tolist() == []


def test_an_empty_program():
    executable = fused_executable()
    program = dataclasses.replace(
        executable.program,
        **{
            name: getattr(executable.program, name)[:0] for name in ("instructions", "dmas", "tiles", "waits")
        },
        hlo=(),
        framework=(),
    )
    empty = np.zeros(0, np.int64)
    times = dict.fromkeys(
        ("start_ps", "end_ps", "ready_ps", "dma_trigger_ps", "dma_start_ps", "dma_end_ps"), empty
    )
    simulation = dataclasses.replace(
        executable.simulation, **times, wait_cause=empty.astype(np.int32), duration_ps=0
    )
    template = make_template(dataclasses.replace(executable, program=program, simulation=simulation))
    assert len(template.instructions.start_ns) == len(template.dma_instruction) == len(template.hlo_rows) == 0


def test_names_are_those_of_the_published_tables():
    program = fused_graph()
    assert engine_titles(program) == ["Sync", "Tensor", "Scalar", "Sync"]
    assert opcode_names(program) == ["DMA_TRIGGER", "MATMUL", "ACTIVATE", "DMA_TRIGGER"]
    assert queue_kind_names(program) == ["hardware_dynamic", "software_dynamic"]
    assert purpose_names(program) == ["weight", "output"]
