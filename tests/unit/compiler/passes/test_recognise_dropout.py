import torch

from neuron_tools.compiler.opcodes import DROPOUT
from neuron_tools.compiler.passes.attention import find_attention
from neuron_tools.compiler.passes.pipeline import optimise
from tests.unit.compiler.operators import lowered

_aten = torch.ops.aten


def optimised(target, *arguments):
    return optimise(lowered(target, *arguments))


def opcodes(module):
    return [operation.opcode for operation in module.operations]


def test_a_mask_that_nobody_keeps_is_drawn_where_it_is_applied():
    query = torch.empty(2, 4, 128, 64, device="meta")
    found = optimised(
        _aten._scaled_dot_product_fused_attention_overrideable.default, query, query, query, None, 0.25, False
    )
    assert not {"rng", "compare"} & {*opcodes(found)}
    (dropout,) = (operation for operation in found.operations if operation.opcode == DROPOUT)
    assert 0 < dropout.attributes["probability"] < 1
    (block,) = find_attention(found)
    assert dropout in block.body
    assert block.normalised.opcode == "divide"
    assert block.scaled is not None


def test_a_mask_that_is_stored_is_drawn_once():
    found = optimised(_aten.native_dropout.default, torch.empty(256, 512, device="meta"), 0.25, True)
    assert "rng" in opcodes(found)
    assert DROPOUT not in opcodes(found)
