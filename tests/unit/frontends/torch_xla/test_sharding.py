"""How XLA writes shardings, and which part of a tensor a core has."""

from __future__ import annotations

import pytest

from neuron_tools.frontends.torch_xla.sharding import WHOLE, Sharding


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("{replicated}", "{replicated}"),
        ("{maximal device=1}", "{replicated}"),
        ("{devices=[2,1]<=[2]}", "{devices=[2,1]0,1}"),
        ("{devices=[2,2]<=[2,2]T(1,0)}", "{devices=[2,2]0,2,1,3}"),
        ("{devices=[2,1]1,0}", "{devices=[2,1]1,0}"),
        (
            "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
            "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}",
        ),
        ("{devices=[1,1,4]<=[4] last_tile_dim_replicate}", "{replicated}"),
    ],
)
def test_all_forms_that_xla_writes_are_read(text, canonical):
    assert Sharding.parse(text).text == canonical
    assert Sharding.parse(canonical) == Sharding.parse(text)


def test_cores_with_the_same_tile_have_the_same_part():
    sharding = Sharding.of((2, 1), [0, 2, 1, 3])
    parts = [sharding.part((8, 4), core) for core in range(4)]
    assert parts[0] == parts[2] == (slice(0, 4), slice(0, 4))
    assert parts[1] == parts[3] == (slice(4, 8), slice(0, 4))


def test_the_last_parts_of_what_does_not_divide_are_smaller():
    sharding = Sharding.of((4,), range(4))
    parts = [sharding.part((5,), core)[0] for core in range(4)]
    assert [(part.start, part.stop) for part in parts] == [(0, 2), (2, 4), (4, 5), (5, 5)]


def test_each_core_has_all_of_what_is_whole():
    assert WHOLE.part((3, 2), 7) == (slice(0, 3), slice(0, 2))
