"""Layers that are alike are one row, and the sum stays the same."""

from __future__ import annotations

from hypothesis import given, strategies as st

from neuron_profile.analysis.comparison.difference import make_deltas
from neuron_profile.analysis.comparison.layers import join_layers
from neuron_profile.analysis.comparison.operations import Counters, OperationKey, OperationTotal


def totals(rows):
    """Totals of (module, ns, HBM bytes)."""
    return {
        OperationKey(module, "mm", False): OperationTotal(
            ns, Counters(calls=1, hbm_bytes=size), "train.py", 7
        )
        for module, ns, size in rows
    }


def joined(base, new):
    return {each.delta.key.module: each for each in join_layers(make_deltas(totals(base), totals(new)))}


def test_numbered_layers_are_one_row_with_its_reason():
    base = [(f"/model/layers/{number}/mlp", 100, 1000) for number in range(3)]
    new = [(f"/model/layers/{number}/mlp", 140, 2000) for number in range(3)]
    (row,) = joined([*base], [*new]).values()
    assert (row.delta.key.module, row.modules, row.delta.delta_ns) == ("/model/layers/*/mlp", 3, 120)
    (reason,) = row.delta.reasons
    assert (reason.counter, reason.base, reason.new) == ("hbm_bytes", 3000, 6000)
    assert (row.delta.file, row.delta.line) == ("train.py", 7)


def test_a_layer_of_its_own_keeps_its_name():
    rows = joined([("/model/layers/3", 100, 0)], [("/model/layers/3", 150, 0)])
    assert list(rows) == ["/model/layers/3"]


def test_added_layers_are_told_apart_from_changed_ones():
    rows = join_layers(
        make_deltas(totals([("/m/0", 100, 0)]), totals([("/m/0", 160, 0), ("/m/1", 7, 0), ("/m/2", 7, 0)]))
    )
    assert [(each.delta.key.module, each.delta.change, each.modules) for each in rows] == [
        ("/m/0", "changed", 1), ("/m/*", "added", 2),
    ]  # fmt: skip


MODULES = st.sampled_from(["/m/0", "/m/1", "/m/2", "/m/1/a", "/m/2/a", "/head", ""])
PROFILE = st.lists(
    st.tuples(MODULES, st.integers(0, 10_000), st.integers(0, 99)), unique_by=lambda row: row[0]
)


@given(PROFILE, PROFILE)
def test_the_sum_is_that_of_the_totals(base, new):
    rows = join_layers(make_deltas(totals(base), totals(new)))
    assert sum(each.delta.delta_ns for each in rows) == sum(row[1] for row in new) - sum(
        row[1] for row in base
    )
