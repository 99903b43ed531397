"""Engines that share a memory port: one at a time, in order of time, where the generation shares it."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from neuron_tools import hardware
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode
from neuron_tools.simulator import ProgramBuilder, simulate
from neuron_tools.simulator.instruction_costs import shared_ports
from tests.unit.simulator.programs import random_builder

BUSY = 4096


def two_engines(other, *, source=Memory.SBUF, dtype=DType.F32, opcode=Opcode.TENSOR_REDUCE, target="trn1"):
    """Vector and another engine, both free to start at once."""
    build = ProgramBuilder("ports", target)
    for engine, code in ((Engine.VECTOR, opcode), (other, Opcode.TENSOR_COPY)):
        build.instruction(
            engine, code, partitions=128, elements=BUSY, input_dtype=dtype, output_dtype=dtype,
            source_memory=source, destination_memory=Memory.SBUF,
        )  # fmt: skip
    return build.finish()


def test_vector_and_gpsimd_take_turns_at_sbuf_on_trn1():
    result = simulate(two_engines(Engine.GPSIMD), hardware.get("trn1"))
    assert result.start_ps[0] == 0
    assert result.start_ps[1] >= BUSY / 1.12 * 1000
    assert result.ready_ps[1] == 0
    assert result.wait_cause.tolist() == [-1, 0]


def test_vector_and_scalar_take_turns_at_psum_on_trn1():
    turns = simulate(two_engines(Engine.SCALAR, source=Memory.PSUM), hardware.get("trn1"))
    apart = simulate(two_engines(Engine.SCALAR), hardware.get("trn1"))
    assert turns.start_ps[1] > 0
    assert apart.start_ps[1] == 0


@pytest.mark.parametrize("target", ["trn2", "trn3"])
def test_later_generations_share_only_in_performance_modes(target):
    core = hardware.get(target)
    plain = two_engines(Engine.GPSIMD, target=target)
    fast = two_engines(Engine.GPSIMD, dtype=DType.BF16, opcode=Opcode.TENSOR_COPY, target=target)
    assert simulate(plain, core).start_ps[1] == 0
    assert simulate(fast, core).start_ps[1] > 0


def test_a_second_operand_in_psum_needs_its_port():
    build = ProgramBuilder("ports", "trn1")
    build.instruction(
        Engine.VECTOR, Opcode.TENSOR_TENSOR, elements=BUSY, source_memory=Memory.SBUF,
        destination_memory=Memory.SBUF, flags=Flag.SECOND_OPERAND_PSUM,
    )  # fmt: skip
    build.instruction(Engine.SCALAR, Opcode.ACTIVATE, elements=1, source_memory=Memory.PSUM)
    assert simulate(build.finish(), hardware.get("trn1")).start_ps[1] > 0


def test_the_earlier_engine_goes_first_whatever_its_place_in_the_table():
    build = ProgramBuilder("ports", "trn1")
    wait = build.instruction(Engine.SCALAR, Opcode.ACTIVATE, elements=64)
    late = build.instruction(
        Engine.VECTOR, Opcode.TENSOR_REDUCE, elements=BUSY, source_memory=Memory.SBUF, after=[wait]
    )
    early = build.instruction(Engine.GPSIMD, Opcode.TENSOR_COPY, elements=BUSY, source_memory=Memory.SBUF)
    result = simulate(build.finish(), hardware.get("trn1"))
    assert result.start_ps[early] == 0 < result.start_ps[late]
    assert result.wait_cause[late] == early


@given(st.integers(0, 2**32), st.sampled_from(["trn1", "trn2"]))
@settings(max_examples=30, deadline=None)
def test_no_two_engines_hold_a_port_at_once(seed, target):
    core = hardware.get(target)
    program = random_builder(seed, 60, dma_share=0.1).finish()
    result = simulate(program, core)
    ports = shared_ports(program.instructions, core)
    engines = program.instructions["engine"]
    for bit in (1, 2):
        rows = np.flatnonzero(ports & bit)
        rows = rows[np.argsort(result.start_ps[rows], kind="stable")]
        held = _streaming_ps(program, core)[rows]
        for index in range(len(rows) - 1):
            if engines[rows[index]] != engines[rows[index + 1]]:
                assert result.start_ps[rows[index]] + held[index] <= result.start_ps[rows[index + 1]]


def _streaming_ps(program, core):
    from neuron_tools.simulator.instruction_costs import instruction_costs

    return instruction_costs(program.instructions, core)[0]


def test_programs_of_one_of_the_engines_need_no_port():
    program = two_engines(Engine.TENSOR)
    assert not shared_ports(program.instructions, hardware.get("trn1")).any()
