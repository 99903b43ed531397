from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from neuron_tools.device.driver.executions import MOST_PHYSICAL_CORES, SessionExecutions
from neuron_tools.device.driver.usage import COUNTERS
from tests.unit.device.driver.fake_source import executions, usage


@given(st.lists(st.lists(st.integers(0, 50), max_size=6), max_size=6))
def test_what_is_added_in_parts_is_what_is_added_at_once(parts: list[list[int]]) -> None:
    session, whole = SessionExecutions(1, 1), SessionExecutions(1, 1)
    for number in range(1, 6):
        for each in (session, whole):
            each.define(number, usage(f"m{number}", first=number))
    added = [session.add(0, executions(*part)).counters for part in parts]
    size = max(map(len, parts), default=0)
    once = executions(*(sum(part[n] for part in parts if n < len(part)) for n in range(size)))
    nothing = np.zeros((MOST_PHYSICAL_CORES, len(COUNTERS)), np.int64)
    assert np.array_equal(sum(added, nothing), whole.add(0, once).counters)
    assert session.models(9) == whole.models(9)


def test_executables_that_nobody_defined_add_nothing() -> None:
    added = SessionExecutions(1, 2).add(1, executions(3, 0, 4))
    assert not added.counters.any()
    assert not added.latency.any()
    assert added.first_runs == []


def test_a_first_run_is_told_once_for_each_core() -> None:
    session = SessionExecutions(1, 2)
    session.define(2, usage("m"))
    first = [len(session.add(index, executions(0, 0, 1)).first_runs) for index in (0, 0, 1)]
    assert first == [1, 0, 1]
