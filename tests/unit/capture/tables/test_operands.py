import dataclasses

from neuron_tools.capture.tables.operands import operand_texts
from tests.unit.capture.programs import copy_and_scale, fused_graph


def test_operands_are_types_memories_and_extents():
    assert operand_texts(fused_graph()) == [
        "",
        "S[0]++@complete src=f32@SBUF[4,4] dst=f32@PSUM[4,4] 4*4 acc",
        "S[1]++@complete src=f32@PSUM[4,4] dst=bf16@SBUF[4,4]",
        "",
    ]


def test_only_what_holds_weights_has_a_stationary_extent():
    assert all("*" not in text for text in operand_texts(copy_and_scale()))


def test_no_instructions():
    program = copy_and_scale()
    assert operand_texts(dataclasses.replace(program, instructions=program.instructions[:0])) == []
