"""Operands whose elements repeat: each partition loads what it needs of them once."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from neuron_tools.compiler.views import Block, Spread, spread
from neuron_tools.records.program import Memory
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import CORE, binary, compiled, function, moved, tensor

BYTES = 2


def times_repeated(shape, dims) -> str:
    """A tensor times one that has only some of its dimensions."""
    full, small = tensor(shape, "bf16"), tensor([shape[dim] for dim in dims], "bf16")
    return function(
        f"%a: {full}, %b: {small}",
        full,
        f"%x = stablehlo.broadcast_in_dim %b, dims = {list(dims)} : ({small}) -> {full}",
        f"%r = stablehlo.multiply %a, %x : {full}",
    )


REPEATED = {
    "between": ((64, 1024, 64), (0, 2)),
    "few numbers, each for many": ((8, 1024, 64), (0,)),
    "innermost": ((64, 64, 1024), (1,)),
    "channels": ((64, 32, 32, 32), (0, 1)),
}


@pytest.mark.parametrize("name", REPEATED)
def test_what_repeats_costs_a_small_part_of_the_traffic_and_no_time(name):
    shape, dims = REPEATED[name]
    program = compiled(times_repeated(shape, dims))
    count = 1
    for extent in shape:
        count *= extent
    loaded = moved(program, Memory.HBM, Memory.SBUF)
    assert count * BYTES < loaded < 1.05 * count * BYTES
    both_whole = compiled(binary("multiply", tensor(shape, "bf16")))
    assert simulate(program, CORE).duration_ps < simulate(both_whole, CORE).duration_ps


blocks_of = st.lists(st.integers(0, 4).map(lambda power: 2**power), min_size=1, max_size=4)


@given(extents=blocks_of, first_real=st.booleans(), power=st.integers(0, 8))
def test_a_spread_is_the_same_for_every_stretch(extents, first_real, power):
    blocks = [Block(extent, first_real == (place % 2 == 0)) for place, extent in enumerate(extents)]
    positions = [0]
    for block in blocks:
        scale = block.extent if block.real else 1
        positions = [
            place * scale + (step if block.real else 0) for place in positions for step in range(block.extent)
        ]
    stretch = 2**power
    found = spread(blocks, stretch)
    if len(positions) % stretch:
        return
    pieces = [positions[start : start + stretch] for start in range(0, len(positions), stretch)]
    assert found is not None
    assert {len(set(piece)) for piece in pieces} == {found.count}
    if found.repeats_innermost and blocks[-1].extent > 1:
        assert all(piece[0] == piece[1] for piece in pieces)


def test_stretches_that_cut_blocks_differently_have_no_common_spread():
    assert spread([Block(3, True), Block(4, False)], 6) is None
    assert spread([Block(8, True), Block(16, False), Block(4, True)], 32) == Spread(4, False)
    assert spread([Block(8, True), Block(16, False)], 8) == Spread(1, True)
