"""How XLA's partitioner cuts a call that it does not know."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

from neuron_tools.frontends.jax.batched_calls import PART_OF_CALL, WHOLE_CALL, BatchedCall
from neuron_tools.frontends.jax.partitioning import read_part, split

DEVICES = 4
EACH_ITS_OWN = {
    "batch": "{devices=[4,1,1]0,1,2,3}",
    "heads": "{devices=[1,4,1]0,1,2,3}",
    "both": "{devices=[2,2,1]0,1,2,3}",
}


def part_of(
    sharding: str,
    left: str = "4x8x6xf32",
    right: str = "4x8x2xf32",
    made: str = "4x8x3xf32",
    right_sharding: str = "{replicated}",
):
    """What each device does of a call whose left operand lies so; its second result is as large."""
    results = f"tensor<{made}>, tensor<{left}>"
    text = f"""func.func @main(%a: tensor<{left}> {{mhlo.sharding = "{sharding}"}},
        %b: tensor<{right}> {{mhlo.sharding = "{right_sharding}"}}) -> ({results}) {{
      %r:2 = "stablehlo.custom_call"(%a, %b) {{call_target_name = "{WHOLE_CALL}",
        backend_config = "{BatchedCall(7, 2).config}"}} : (tensor<{left}>, tensor<{right}>) -> ({results})
      return %r#0, %r#1 : {results}
    }}"""
    module = read_part(split(text, DEVICES, [True, True]).bytecode)
    (call,) = [each for each in module.operations if each.attributes.get("call_target_name") == PART_OF_CALL]
    assert BatchedCall.parse(call.attributes["backend_config"]) == BatchedCall(7, 2)
    return [module.shape_of(value) for value in (*call.operands, *call.results)]


@pytest.mark.parametrize(("sharding", "batches"), [("batch", (1, 8)), ("heads", (4, 2)), ("both", (2, 4))])
def test_each_device_has_its_batches_of_all_operands_and_results(sharding, batches):
    assert part_of(EACH_ITS_OWN[sharding]) == [(*batches, last) for last in (6, 2, 3, 6)]


def test_an_operand_with_one_element_along_a_cut_axis_is_whole_there():
    shapes = part_of(EACH_ITS_OWN["both"], right="4x1x2xf32")
    assert shapes == [(2, 4, 6), (2, 1, 2), (2, 4, 3), (2, 4, 6)]


def test_an_axis_that_an_operand_cannot_be_cut_along_is_whole():
    shapes = part_of(EACH_ITS_OWN["heads"], right="4x2x2xf32")
    assert shapes == [(4, 8, 6), (4, 2, 2), (4, 8, 3), (4, 8, 6)]


def test_batches_that_the_devices_do_not_divide_are_padded():
    shapes = part_of(EACH_ITS_OWN["batch"], left="6x8x6xf32", right="6x1x2xf32", made="6x8x3xf32")
    assert shapes == [(2, 8, 6), (2, 1, 2), (2, 8, 3), (2, 8, 6)]


def test_where_one_operand_cannot_be_cut_so_another_ones_cut_is_taken():
    pairs = "{devices=[1,2,1,2]0,1,2,3 last_tile_dim_replicate}"
    shapes = part_of(EACH_ITS_OWN["heads"], right="4x2x2xf32", right_sharding=pairs)
    assert shapes == [(4, 4, 6), (4, 1, 2), (4, 4, 3), (4, 4, 6)]


def test_what_lies_along_no_batch_is_gathered():
    assert part_of("{devices=[1,1,2,2]0,1,2,3 last_tile_dim_replicate}")[0] == (4, 8, 6)


def test_a_config_of_something_else_is_refused():
    with pytest.raises(ValueError, match="batched call"):
        BatchedCall.parse(b"{}")
