"""Functions that wait for a module."""

from __future__ import annotations

import importlib
import sys

import pytest

from neuron_tools.late_import import after_import


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Name of a module that nobody has imported."""
    (tmp_path / "awaited_module.py").write_text("VALUE = 7\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield "awaited_module"
    sys.modules.pop("awaited_module", None)


def test_the_action_comes_once_when_the_module_stands(module):
    finders, seen = list(sys.meta_path), []
    after_import(module, lambda: seen.append(sys.modules[module].VALUE))
    assert seen == []
    loaded = importlib.import_module(module)
    assert seen == [7]
    assert sys.meta_path == finders
    assert loaded.__loader__ is loaded.__spec__.loader
    importlib.reload(loaded)
    assert seen == [7]


def test_a_module_that_is_there_needs_no_waiting(module):
    importlib.import_module(module)
    seen = []
    after_import(module, lambda: seen.append(1))
    assert seen == [1]


def test_other_modules_are_left_alone(module):
    seen = []
    after_import(module, lambda: seen.append(1))
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("awaited_module_of_another_name")
    assert seen == []
