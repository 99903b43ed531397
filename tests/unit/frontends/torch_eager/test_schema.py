"""What an operator's schema says of how it may run with others."""

import pytest

pytest.importorskip("torch")

from neuron_tools.frontends.torch_eager.schema import UnknownOperator, can_fuse, resolve


@pytest.mark.parametrize(
    ("name", "fusable"),
    [
        ("aten::add.Tensor", True),
        ("aten::add_.Tensor", True),
        ("aten::add.out", False),
        ("aten::_fused_adamw_", False),
    ],
)
def test_outputs_given_by_name_or_in_several_lists_are_not_fused(name, fusable):
    assert can_fuse(name) is fusable


def test_an_operator_that_pytorch_lacks_is_refused_in_a_sentence():
    with pytest.raises(UnknownOperator, match="no operator aten::no_such_thing"):
        resolve("aten::no_such_thing")
