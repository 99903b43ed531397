"""Matrix products with an addend: without the operations that factors of one would cost."""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes

_aten = torch.ops.aten


def _added(product: Any, bias: Any, beta: Any, alpha: Any) -> Any:
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return product + (bias if beta == 1 else bias * beta)


@decomposes(_aten.addmm.default)
def _matrix_product_added(bias: Any, first: Any, second: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _added(_aten.mm(first, second), bias, beta, alpha)


@decomposes(_aten.baddbmm.default)
def _batched_product_added(bias: Any, first: Any, second: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _added(_aten.bmm(first, second), bias, beta, alpha)


@decomposes(_aten.addmv.default)
def _matrix_vector_added(bias: Any, matrix: Any, vector: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _added(_aten.mv(matrix, vector), bias, beta, alpha)
