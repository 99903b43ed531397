import numpy as np
import pytest
from hypothesis import given, strategies as st

import neuron_tools
from neuron_profile.analysis.communication import measure_communication, overlap_ns

SPANS = st.lists(st.integers(1, 20), max_size=8).map(
    lambda steps: (np.cumsum(steps)[: len(steps) // 2 * 2 : 2], np.cumsum(steps)[1 : len(steps) // 2 * 2 : 2])
)


@given(one=SPANS, other=SPANS)
def test_the_common_part_of_spans_is_what_counting_finds(one, other):
    def covered(spans):
        return {moment for start, end in zip(*spans) for moment in range(start, end)}

    assert overlap_ns(one, other) == len(covered(one) & covered(other))


def collectives(starts, ends, **columns):
    count = len(starts)
    return {
        "start_ts": starts, "end_ts": ends, "duration_ns": [end - start for start, end in zip(starts, ends)],
        "operation": ["AllReduce"] * count, "algorithm": ["ring"] * count, "dtype": ["bf16"] * count,
        "num_elements": [8] * count, "op_id": list(range(count)), "stream_id": [0] * count,
        "stream_index": [0] * count, "trigger_engine": ["Sync"] * count, "input_size": [64] * count,
        "output_size": [64] * count, "algorithm_bandwidth": [2e9] * count, "bus_bandwidth": [3e9] * count,
        "process_idx": [0] * count, "cc_trigger_start_delay": [5] * count, **columns,
    }  # fmt: skip


def test_calls_are_summed_and_what_computing_hides_is_told(make_profile, tiny_tables):
    # Tensor is active 1010-1050 and 1210-1250.
    tables = {**tiny_tables, "CcOp": collectives([1000, 1200], [1030, 1205])}
    with neuron_tools.open_profile(make_profile(tables=tables)) as profile:
        result = measure_communication(profile)
    (kind,) = result.kinds
    assert (kind.calls, kind.duration_ns, kind.shortest_ns, kind.wait_ns) == (2, 35, 5, 10)
    assert kind.bus_bandwidth == pytest.approx(3e9)
    assert (result.busy_ns, result.hidden_ns, result.exposed_ns) == (35, 20, 15)


def test_a_profile_without_collectives_has_none(make_profile):
    with neuron_tools.open_profile(make_profile()) as profile:
        result = measure_communication(profile)
    assert (result.kinds, result.busy_ns) == ((), 0)
