"""Parts are found by name, ours first; what cannot be loaded is one sentence."""

import logging
import sys

import pytest

from neuron_tools.doors import Door, PartError, UnknownPartError

NUMBERS = Door(
    "neuron_tools.test_numbers", "number", (("pi", "math:pi"), ("lost", "math:lost"), ("e", "math:e"))
)


def test_names_are_told_in_order_without_loading():
    assert NUMBERS.names() == ("pi", "lost", "e")


def test_a_part_that_cannot_be_loaded_is_left_out_and_told_once(caplog):
    with caplog.at_level(logging.WARNING, "neuron_tools"):
        assert [name for name, _ in NUMBERS.load_all()] == ["pi", "e"]
        assert [name for name, _ in NUMBERS.load_all()] == ["pi", "e"]
    assert len(caplog.records) == 1
    assert "The number 'lost' cannot be loaded (AttributeError" in caplog.text


def test_what_does_not_exist_is_refused_with_what_does():
    with pytest.raises(UnknownPartError, match=r"There is no number 'two'; there are: pi, lost, e\.") as told:
        NUMBERS.load("two")
    assert told.value.exit_status == 2


def test_ours_are_not_foreign():
    assert NUMBERS.foreign() == ()


def test_a_part_that_needs_an_extra_says_which(monkeypatch):
    monkeypatch.setitem(sys.modules, "libcst", None)
    monkeypatch.delitem(sys.modules, "neuron_profile.fix.edits.hoist", raising=False)
    monkeypatch.delitem(sys.modules, "neuron_profile.fix.source", raising=False)
    editors = Door("neuron_tools.test_editors", "editor", (("hoist", "neuron_profile.fix.edits.hoist:edit"),))
    with pytest.raises(PartError, match=r"pip install 'neuron-tools\[fix\]'\.$"):
        editors.load("hoist")
