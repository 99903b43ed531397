import pytest
import torch

from tests.unit.frontends.lowered import lowered

aten = torch.ops.aten


def well_conditioned(*shape):
    return torch.randn(*shape) * 0.3 + 2 * torch.eye(shape[-1])


@pytest.mark.parametrize("unitriangular", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("rows", [1, 5, 16])
def test_triangular_systems_read_their_half_alone(rows, upper, left, unitriangular):
    matrix, right = well_conditioned(2, rows, rows), torch.randn(2, rows, rows)
    options = {"upper": upper, "left": left, "unitriangular": unitriangular}
    (found,) = lowered(aten.linalg_solve_triangular.default, matrix, right, **options)
    torch.testing.assert_close(
        found, torch.linalg.solve_triangular(matrix, right, **options), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("rows", [1, 5, 16])
def test_cholesky_factors(rows, upper):
    root = well_conditioned(2, rows, rows)
    matrix = root @ root.mT + torch.eye(rows)
    factor, info = lowered(aten.linalg_cholesky_ex.default, matrix, upper=upper)
    torch.testing.assert_close(factor, torch.linalg.cholesky(matrix, upper=upper), rtol=1e-4, atol=1e-5)
    assert info.tolist() == [0, 0]
