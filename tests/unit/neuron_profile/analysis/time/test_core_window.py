"""Ranges of a NeuronCore that are held: those read last, no more spans than are allowed."""

import numpy as np
import pytest

from neuron_profile.analysis.time import core_window
from neuron_profile.analysis.time.core_spans import Owned
from neuron_profile.analysis.time.core_window import CoreRange, HeldRanges
from neuron_tools.profile.exposure import Spans


def read(begin_ns: int, end_ns: int, spans: int) -> CoreRange:
    numbers = np.arange(spans)
    return CoreRange(begin_ns, end_ns, [Owned(Spans(numbers, numbers + 1), numbers, numbers, numbers)])


def test_a_range_is_found_in_a_longer_one_of_its_core() -> None:
    held, whole = HeldRanges(), read(0, 100, 3)
    held.add((0, 1), whole)
    assert held.around((0, 1), 10, 100) is whole
    assert held.around((0, 1), 10, 101) is None
    assert held.around((0, 0), 10, 100) is None


def test_the_spans_of_all_cores_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_window, "MOST_HELD", 10)
    held = HeldRanges()
    for core in range(4):
        held.add((core, 0), read(0, 100, 4))
    found = [held.around((core, 0), 0, 1) is not None for core in range(4)]
    assert found == [False, False, True, True]
    held.add((9, 0), read(0, 100, 11))
    assert held.around((9, 0), 0, 1) is not None
    assert held.around((3, 0), 0, 1) is None
