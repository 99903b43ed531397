import pytest
import torch

from neuron_tools.frontends.torch_eager.operation import lower_operation
from tests.unit.frontends.lowered import lowered
from tests.unit.frontends.signatures import describe

aten = torch.ops.aten
DATA = torch.complex(torch.randn(4, 3), torch.randn(4, 3))
OTHER = torch.complex(torch.randn(3), torch.randn(3))
REAL = torch.randn(4, 3)

CALLS = [
    (aten.mul.Tensor, (DATA, OTHER)),
    (aten.mul.Tensor, (DATA, REAL)),
    (aten.mul.Tensor, (REAL, 1 + 2j)),
    (aten.mul.Tensor, (DATA, 2.5)),
    (aten.add.Tensor, (DATA, OTHER)),
    (aten.add.Tensor, (DATA, REAL)),
    (aten.sub.Tensor, (DATA, 1.5)),
    (aten.div.Tensor, (DATA, OTHER)),
    (aten.div.Tensor, (DATA, REAL)),
    (aten.pow.Tensor_Scalar, (DATA, 3)),
    (aten.addcmul.default, (DATA, DATA, OTHER)),
    (aten.mm.default, (DATA, DATA.T.contiguous())),
    (aten.conj_physical.default, (DATA,)),
    (aten.neg.default, (DATA,)),
    (aten.abs.default, (DATA,)),
    (aten.angle.default, (DATA,)),
    (aten.exp.default, (DATA,)),
    (aten.complex.default, (REAL, REAL + 1)),
    (aten.polar.default, (REAL.abs(), REAL)),
    (aten.view_as_real.default, (DATA,)),
    (aten.view_as_complex.default, (torch.randn(3, 2),)),
    (aten.sum.dim_IntList, (DATA, [-1])),
    (aten.mean.dim, (DATA, [0])),
    (aten.cumsum.default, (DATA, 0)),
    (aten.roll.default, (DATA, [1], [0])),
    (aten.cat.default, ([DATA, DATA], -1)),
    (aten.slice.Tensor, (DATA, -1, 1, 3)),
    (aten.permute.default, (DATA, [-1, 0])),
    (aten.expand.default, (OTHER, [4, 3])),
    (aten.unsqueeze.default, (DATA, -1)),
    (aten.view.default, (DATA, [-1])),
    (aten.zero.default, (DATA,)),
    (aten.full_like.default, (DATA, 1 + 1j)),
]


@pytest.mark.parametrize(
    ("target", "args"), CALLS, ids=lambda value: str(value)[:40] if callable(value) else ""
)
def test_operators_of_complex_numbers_have_the_values_of_the_cpu(target, args):
    (found,) = lowered(target, *args)
    torch.testing.assert_close(found, target(*args))


def test_a_product_in_place_writes_the_pairs_where_the_factor_was():
    module = lower_operation("aten::mul_.Tensor", (describe(DATA), describe(OTHER)))
    assert module.warnings == ()
    assert module.aliases == ((0, 0),)
    assert str(module.values[module.parameters[0]].type) == "f32[4,3,2]"


@pytest.mark.parametrize(
    ("name", "args"),
    [("aten::polar.out", (REAL, REAL, DATA)), ("aten::mul.out", (DATA, OTHER, DATA))],
    ids=["polar", "mul"],
)
def test_what_is_made_into_a_given_tensor_is_lowered_as_what_is_returned(name, args):
    assert lower_operation(name, tuple(map(describe, args))).warnings == ()


def test_a_product_takes_no_pair_apart():
    module = lower_operation("aten::mul.Tensor", (describe(DATA), describe(DATA)))
    assert {module.values[value].type.shape for op in module.operations for value in op.results} <= {
        (4, 3, 2),
        (4, 3, 1),
    }


def test_an_unknown_operator_of_complex_numbers_is_timed_by_its_bytes():
    module = lower_operation("aten::linalg_eig", (describe(DATA[:3]),))
    assert [warning.split(" has ")[0] for warning in module.warnings] == ["aten::linalg_eig"]
