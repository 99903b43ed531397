import pytest

from neuron_tools.compiler.passes.attention import find_attention
from neuron_tools.compiler.passes.pipeline import optimise
from tests.unit.compiler.modules import attention, module


def blocks(text: str):
    return find_attention(optimise(module(text)))


@pytest.mark.parametrize("causal", [False, True])
def test_softmax_between_two_products_is_attention(causal):
    (block,) = blocks(attention(causal=causal))
    assert block.is_causal is causal
    assert [op.opcode for op in block.body if op.opcode == "reduce"] == ["reduce", "reduce"]
    assert "select" not in {op.opcode for op in block.body}


def test_weights_that_others_read_stay_in_memory():
    assert blocks(attention(returns_weights=True)) == ()


def test_few_queries_and_types_that_no_engine_multiplies_are_left_to_others():
    assert blocks(attention(rows=8)) == ()
    assert blocks(attention(dtype="f64")) == ()


def test_windows_of_49_tokens_are_enough():
    assert len(blocks(attention(rows=49))) == 1


def test_elements_of_four_bytes_are_as_good_as_those_of_two():
    assert len(blocks(attention(dtype="f32"))) == 1


def test_a_mask_that_looks_into_the_past_is_not_causal():
    (block,) = blocks(attention(causal=True).replace("compare GE", "compare LE"))
    assert not block.is_causal
    assert "select" in {op.opcode for op in block.body}
