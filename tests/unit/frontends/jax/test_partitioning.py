"""What one device runs of a sharded computation."""

from __future__ import annotations

import pytest

from neuron_tools.frontends.jax.partitioning import PartitioningError, bytecode_of, ranks_along

MESH = {"data": 2, "model": 4}


@pytest.mark.parametrize(
    ("axes", "groups"),
    [
        ('axis_ref<name = "model">', [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ('axis_ref<name = "data">', [[0, 4], [1, 5], [2, 6], [3, 7]]),
        ('axis_ref<name = "data">, axis_ref<name = "model">', [[0, 1, 2, 3, 4, 5, 6, 7]]),
        (
            'axis_ref<name = "model", sub_axis_info = #stablehlo.sub_axis_info<pre_size = 2, size = 2>>',
            [[0, 1], [2, 3], [4, 5], [6, 7]],
        ),
    ],
)
def test_a_group_is_the_ranks_that_differ_along_the_named_axes(axes, groups):
    assert ranks_along(MESH, axes).tolist() == groups


def test_an_axis_that_is_named_first_changes_slowest():
    text = 'axis_ref<name = "model">, axis_ref<name = "data">'
    assert ranks_along(MESH, text).tolist() == [[0, 4, 1, 5, 2, 6, 3, 7]]


def test_where_xla_wrote_nothing_the_sentence_says_what_to_do():
    with pytest.raises(PartitioningError, match="install the version of JAX"):
        bytecode_of(b"")
