"""Decompositions that a program registers for PyTorch's operators are told from PyTorch's own."""

import pytest
import torch
from torch._decomp import global_decomposition_table

from neuron_tools.frontends.torch_eager.changed import has_foreign_decompositions


@pytest.fixture(params=["post_autograd", "pre_autograd", "meta"])
def table(request):
    return global_decomposition_table[request.param]


def test_pytorchs_own_are_not_foreign():
    assert not has_foreign_decompositions()


def test_a_new_one_and_one_in_the_place_of_pytorchs_are(table, monkeypatch):
    for operator in (torch.ops.aten.mish.default, torch.ops.aten.bincount.default):
        with monkeypatch.context() as patch:
            patch.setitem(table, operator, lambda tensor: tensor * 2)
            assert has_foreign_decompositions()


def test_those_of_another_librarys_operators_change_nothing_of_pytorchs(table, monkeypatch):
    monkeypatch.setitem(table, "vision.nms.default", lambda tensor: tensor)
    assert not has_foreign_decompositions()
