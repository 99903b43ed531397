from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from neuron_tools.device.driver.counts import CoreCounts, Memory, sum_of

numbers = st.integers(0, 10**15)
memories = st.builds(Memory, numbers, numbers, numbers)
counts = st.builds(
    CoreCounts,
    status=st.dictionaries(st.sampled_from(["success", "exec_bad_input"]), numbers),
    inference_count=numbers,
    flop_count=numbers,
    busy_ns=numbers,
    engine_busy_ns=st.dictionaries(st.sampled_from(["tensor", "vector"]), numbers),
    device_memory=st.dictionaries(st.sampled_from(["tensors", "constants"]), memories),
    latency=st.dictionaries(st.sampled_from(["device", "total"]), st.dictionaries(numbers, numbers)),
)


@given(counts)
def test_counts_survive_their_file(core: CoreCounts) -> None:
    assert CoreCounts.from_json(json.loads(json.dumps(core.as_json()))) == core


@given(st.lists(counts, min_size=1, max_size=4))
def test_a_sum_does_not_depend_on_the_grouping(cores: list[CoreCounts]) -> None:
    assert sum_of([sum_of(cores[:1]), sum_of(cores[1:])]) == sum_of(cores)


def test_a_peak_is_the_largest_of_one_process_and_what_ended_holds_nothing() -> None:
    one = CoreCounts(device_memory={"tensors": Memory(10, 4, 8)})
    two = CoreCounts(device_memory={"tensors": Memory(5, 5, 5)})
    assert sum_of([one, two]).device_memory == {"tensors": Memory(15, 9, 8)}
    assert one.without_present().device_memory == {"tensors": Memory(10, 0, 8)}


def test_what_is_no_core_is_refused() -> None:
    with pytest.raises((TypeError, AttributeError)):
        CoreCounts.from_json({"nonsense": 1})
