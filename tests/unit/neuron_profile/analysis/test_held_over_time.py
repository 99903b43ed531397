"""What memory held over time, by category."""

from __future__ import annotations

import neuron_tools
from neuron_profile.analysis.held_over_time import HeldOverTime, held_over_time
from neuron_profile.analysis.memory_holders import by_category, find_memory_holders

# time, kind, address, bytes, held, category
EVENTS = [
    (0, "allocate", 1, 400, 450, "other"),  # 50 were held before
    (10, "allocate", 2, 100, 550, "activation"),
    (20, "allocate", 3, 60, 610, "gradient"),
    (30, "free", 2, 100, 510, None),
    (40, "free", 9, 50, 460, None),  # taken before
    (50, "allocate", 2, 30, 490, "gradient"),
    (60, "free", 3, 60, 430, None),
]
WEIGHT = {"address": [1], "name": ["Net.fc.weight"], "category": ["parameter"], "process_idx": [0]}


def tables():
    names = ("timestamp", "kind", "address", "size", "held_bytes", "category")
    rows = dict(zip(names, map(list, zip(*EVENTS))))
    count = len(EVENTS)
    more = {
        "event_idx": list(range(count)), "framework_name": [None] * count, "layer": [None] * count,
        "source_file": [None] * count, "source_line": [0] * count, "is_backward": [False] * count,
        "pcore_idx": [0] * count, "process_idx": [0] * count,
    }  # fmt: skip
    return {"MemoryEvent": rows | more, "TensorName": WEIGHT}


def test_categories_follow_what_is_taken_and_given_back(make_profile):
    with neuron_tools.open_profile(make_profile(tables=tables())) as profile:
        (found,) = held_over_time(profile, 100)
    assert found == HeldOverTime(
        0, 0, (0, 10, 20, 30, 40, 50, 60, 60),
        {
            "parameter": (400,) * 8,
            "gradient": (0, 0, 60, 60, 60, 90, 30, 30),
            "activation": (0, 100, 100, 0, 0, 0, 0, 0),
            "other": (50, 50, 50, 50, 0, 0, 0, 0),
        },
    )  # fmt: skip


def test_a_range_begins_and_ends_with_what_is_held_there(make_profile):
    with neuron_tools.open_profile(make_profile(tables=tables())) as profile:
        (found,) = held_over_time(profile.slice(15, 45), 100)
    assert found.time_ns == (15, 20, 30, 40, 45)
    assert found.by_category["parameter"] == (400,) * 5
    assert found.by_category["activation"] == (100, 100, 0, 0, 0)


def test_few_points_keep_the_peak_and_its_categories(make_profile):
    with neuron_tools.open_profile(make_profile(tables=tables())) as profile:
        (found,) = held_over_time(profile, 1)
        peak = {row.category: row.byte_count for row in by_category(find_memory_holders(profile))}
    assert found.time_ns == (20, 60)
    assert {name: held[0] for name, held in found.by_category.items()} == peak


def test_the_peak_of_a_range_knows_what_was_taken_before_it(make_profile):
    with neuron_tools.open_profile(make_profile(tables=tables())) as profile:
        held = by_category(find_memory_holders(profile.slice(15, 25)))
    assert {row.category: row.byte_count for row in held} == {
        "parameter": 400, "activation": 100, "gradient": 60, "other": 50
    }  # fmt: skip


def test_no_events_are_no_series(make_profile):
    with neuron_tools.open_profile(make_profile(tables={})) as profile:
        assert held_over_time(profile, 10) == ()
