"""Records take no change and no further attribute."""

from __future__ import annotations

import dataclasses

import pytest

from neuron_tools.frozen import frozen


@frozen
class Interval:
    start_ns: int
    end_ns: int = 0


def test_a_field_cannot_be_changed():
    interval = Interval(1, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        interval.end_ns = 3  # type: ignore[misc]  # what the test is about
    assert interval.end_ns == 2


def test_an_attribute_cannot_be_added():
    assert not hasattr(Interval(1), "__dict__")


def test_records_of_equal_fields_are_equal_and_hash_alike():
    assert Interval(1) == Interval(1, 0)
    assert len({Interval(1), Interval(1, 0), Interval(2)}) == 2


def test_a_record_can_be_replaced_by_one_with_other_fields():
    assert dataclasses.replace(Interval(1), end_ns=5) == Interval(1, 5)
