"""What DMA rows say about their descriptors."""

from __future__ import annotations

from neuron_tools.records.program import Memory
from tests.unit.compiler.modules import compiled, function, matmul, reduction, tensor, unary


def loads(program):
    return program.dmas[program.dmas["destination_memory"] == Memory.SBUF]


def test_whole_rows_follow_one_another():
    assert not loads(compiled(reduction("add", (512, 1024), (1,))))["strided"].any()
    assert not compiled(unary("tanh", tensor((4096, 4096)))).dmas["strided"].any()


def test_blocks_of_columns_start_a_new_stretch_for_each_row():
    program = compiled(matmul(256, 512, 8192))
    right = loads(program)[loads(program)["transpose"] == 0]
    assert right["strided"].any()
    assert compiled(matmul(256, 512, 256)).dmas["strided"].sum() == 0


def test_transfers_that_change_the_type_name_how_much_wider_the_other_side_is():
    wide, narrow = tensor((256, 512)), tensor((256, 512), "bf16")
    text = function(
        f"%a: {wide}", narrow, f"%t = stablehlo.tanh %a : {wide}",
        f"%r = stablehlo.convert %t : ({wide}) -> {narrow}",
    )  # fmt: skip
    assert set(loads(compiled(text))["cast"].tolist()) == {0}
    sums = compiled(reduction("add", (512, 256), (0,), "bf16"))
    stored = sums.dmas[sums.dmas["destination_memory"] == Memory.HBM]
    assert set(stored["cast"].tolist()) == {2}
