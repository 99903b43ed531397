"""Products of long contractions whose sums stay in SBUF while operands come in parts."""

from __future__ import annotations

import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compiler.codegen.held_sums import held_blockings
from neuron_tools.compiler.compile import compile_module
from neuron_tools.records.program import Memory, Opcode, Program
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import tile_races
from tests.unit.compiler.operators import lowered

CORE = hardware.get("trn1")
PEAK_FLOPS = 91.75e12
"""Of a core in bf16, as the roofline has it."""


def product(rows: int, depth: int, columns: int, *, turned: bool) -> Program:
    """A product in bf16, the contraction of whose left operand may be outside, as in gradients of weights."""
    left = torch.empty((depth, rows) if turned else (rows, depth), dtype=torch.bfloat16, device="meta")
    right = torch.empty((depth, columns), dtype=torch.bfloat16, device="meta")
    return compile_module(lowered(torch.ops.aten.mm.default, left.t() if turned else left, right), CORE)


def loaded_bytes(program: Program) -> int:
    dmas = program.dmas
    return int(dmas["bytes"][dmas["source_memory"] == Memory.HBM].sum())


@pytest.mark.parametrize(
    ("rows", "depth", "columns", "turned"), [(4096, 8192, 1024, True), (4096, 50257, 768, False)]
)
def test_long_contractions_come_near_the_time_of_the_tensor_engine(rows, depth, columns, turned):
    program = product(rows, depth, columns, turned=turned)
    assert tile_races(program) == 0
    compute_ps = 2 * rows * depth * columns / PEAK_FLOPS * 1e12
    assert simulate(program, CORE).duration_ps < 1.35 * compute_ps


def test_operands_are_loaded_once_or_twice():
    program = product(4096, 8192, 1024, turned=True)
    assert loaded_bytes(program) <= 2 * (4096 + 1024) * 8192 * 2


def test_every_part_but_the_first_is_added():
    program = product(4096, 8192, 1024, turned=True)
    opcodes = program.instructions["opcode"]
    added, copied = (int((opcodes == opcode).sum()) for opcode in (Opcode.TENSOR_TENSOR, Opcode.TENSOR_COPY))
    tiles = 4096 // 128 * (1024 // 512)
    assert added
    assert added % tiles == 0
    assert copied >= tiles


def test_short_contractions_stay_in_psum():
    opcodes = product(1024, 512, 1024, turned=True).instructions["opcode"]
    assert not (opcodes == Opcode.TENSOR_TENSOR).any()


def test_blocks_are_about_equal():
    rows = {blocking.held_rows for blocking in held_blockings(32, 2)}
    assert rows == {4, 5, 6, 7, 8, 11, 16, 32}
