"""Which devices Lightning's arguments mean, and what a release of it that is made otherwise gets."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

from neuron_tools.frontends import lightning_accelerator
from neuron_tools.frontends.lightning_accelerator import parse_devices


@pytest.fixture(autouse=True)
def four_devices(monkeypatch):
    monkeypatch.setattr(torch.neuron, "device_count", lambda: 4)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (1, [0]),
        (3, [0, 1, 2]),
        (-1, [0, 1, 2, 3]),
        ("2", [0, 1]),
        ("1,3", [1, 3]),
        ("2,", [2]),
        ([3, 1], [3, 1]),
    ],
)
def test_devices_are_a_count_or_numbers(asked, meant):
    assert parse_devices(asked) == meant


@pytest.mark.parametrize("asked", [5, [4], "0,9", [], [-2]])
def test_devices_that_are_not_there_are_refused(asked):
    with pytest.raises(ValueError, match="There are 4 neuron devices here"):
        parse_devices(asked)


def test_a_release_that_is_made_otherwise_works_on_with_a_warning(monkeypatch):
    for name in ("other", "other.accelerators", "other.connector", "other.strategies"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    with pytest.warns(RuntimeWarning, match="other does not know the device neuron"):
        lightning_accelerator._try_to_extend("other", "connector", "_Connector")
