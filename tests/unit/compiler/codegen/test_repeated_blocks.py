"""Elements repeated along inner axes, as by an upsampled image: loaded once, repeated on chip."""

from __future__ import annotations

import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compiler import compile_module
from neuron_tools.records.program import Memory
from neuron_tools.simulator import simulate
from tests.unit.compiler.operators import DRAWN_BY_A_CORE, lowered

aten = torch.ops.aten
CORE = hardware.get("trn1")


@pytest.mark.parametrize("scale", [2, 4])
@pytest.mark.parametrize(("channels", "side"), [(512, 20), (128, 40)])
def test_an_upsampled_image_is_loaded_once_in_long_pieces(channels, side, scale):
    image = torch.empty((1, channels, side, side), device="meta")
    wide = [side * scale] * 2
    program = compile_module(lowered(aten.upsample_nearest2d.default, image, wide, None, None), CORE)
    rows = program.dmas[program.dmas["destination_memory"] == Memory.SBUF]
    read, written = 4 * channels * side * side, 4 * channels * wide[0] * wide[1]
    assert read <= rows["bytes"].sum() <= 1.01 * read
    assert rows["descriptor_bytes"].min() >= 4 * side
    assert simulate(program, CORE).duration_ps * 1e-12 <= 2 * (read + written) / DRAWN_BY_A_CORE + 5e-6
