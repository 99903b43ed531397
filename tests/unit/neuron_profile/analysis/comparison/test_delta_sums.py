"""Whatever happens to operations between two profiles, the deltas add up, and each is seen once."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from neuron_profile.analysis.comparison.alignment import align
from neuron_profile.analysis.comparison.difference import THROTTLED, TILES, make_deltas
from neuron_profile.analysis.comparison.operations import Counters, OperationKey, OperationTotal

names = st.sampled_from(["aten::mm", "aten::add", "aten::add_", "aten::gelu", "fused_mlp"])
modules = st.sampled_from(
    ["/model/layers/0/mlp", "/model/layers/1/mlp", "/OptimizedModule/model/layers/0/mlp", ""]
)
keys = st.builds(OperationKey, modules, names, st.booleans())
operation = st.builds(OperationTotal, st.integers(0, 10**6), st.just(Counters()))
totals = st.dictionaries(keys, operation, max_size=14)


@given(totals, totals)
def test_deltas_add_up_and_name_each_operation_once(base, new):
    deltas = make_deltas(base, new)
    assert sum(delta.delta_ns for delta in deltas) == sum(total.device_ns for total in new.values()) - sum(
        total.device_ns for total in base.values()
    )
    pairs = align(base, new)
    assert sorted(old for old, _ in pairs if old) == sorted(base)
    assert sorted(key for _, key in pairs if key) == sorted(new)
    assert len(deltas) == len(pairs)


@given(totals, st.randoms())
def test_order_does_not_matter(base, random):
    shuffled = list(base.items())
    random.shuffle(shuffled)
    deltas = make_deltas(base, dict(shuffled))
    assert {delta.change for delta in deltas} <= {"same"}


def change(base: OperationTotal, new: OperationTotal):
    key = OperationKey("/model", "aten::mm", False)
    (delta,) = make_deltas({key: base}, {key: new})
    return [reason.counter for reason in delta.reasons]


@pytest.mark.parametrize(
    ("counters", "reasons"),
    [
        (Counters(2, 100, 10, 0, 0, 50, 0, 500), ["calls", "hbm_bytes"]),
        (Counters(1, 50, 20, 0, 0, 50, 0, 500), [TILES]),
        (Counters(1, 50, 10, 0, 0, 50, 0, 900), [THROTTLED]),
        (Counters(1, 50, 10, 40, 0, 50, 0, 500), ["dma_wait_ns"]),
        (Counters(1, 50, 10, 0, 0, 50, 8, 500), ["spill_bytes"]),
    ],
)
def test_the_counter_that_moved_is_the_reason(counters, reasons):
    before = OperationTotal(1000, Counters(1, 50, 10, 0, 0, 50, 0, 500))
    assert change(before, OperationTotal(1900, counters)) == reasons


def test_a_counter_that_moved_the_other_way_is_no_reason():
    before = OperationTotal(1000, Counters(1, 50, 10, 0, 0, 50, 0, 500))
    assert change(before, OperationTotal(1900, Counters(1, 20, 10, 0, 0, 50, 0, 500))) == []
