"""Texts in, lines out: where products take operands that are cast to fp32."""

from __future__ import annotations

import pytest

from neuron_profile.analysis.upcast_sources import upcast_lines


@pytest.mark.parametrize(
    "text",
    [
        "y = x.float() @ w.float()",
        "y = torch.mm(x.to(torch.float32), w.double())",
        "y = torch.matmul(x.float(), w.weight.float().t()).to(x.dtype)",
        "y = x.view(8, -1).float() @ w.float().mT",
        "def f(x, w):\n    return F.linear(x.float(),\n        w.float())",
    ],
)
def test_statements_whose_product_has_only_cast_operands(text):
    lines = text.splitlines()
    assert upcast_lines(lines) == {number for number, line in enumerate(lines, 1) if "def" not in line}


@pytest.mark.parametrize(
    "text", ["y = x.float() @ w", "y = x.to(d) @ w.to(d)", "y = x.float() * 2", "y = (", ""]
)
def test_other_statements_are_none(text):
    assert not upcast_lines(text.splitlines())
