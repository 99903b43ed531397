"""Who holds device memory at its peak."""

from __future__ import annotations

from typing import Any

import pytest

import neuron_tools
from neuron_profile.analysis import memory_holders
from neuron_profile.analysis.memory_holders import (
    HELD_BEFORE,
    CategoryBytes,
    MemoryHolder,
    by_category,
    find_memory_holders,
)

# address, bytes (negative = given back), held, category, operation, layer, line, core
EVENTS = [
    (1, 400, 400, "other", "aten::empty", "/main()", 3, 0),
    (2, 100, 500, "activation", "aten::mm", "/Net/fc", 7, 0),
    (9, 800, 800, "other", "aten::empty", "/main()", 3, 1),
    (3, 50, 550, "activation", "aten::relu", "/Net", 8, 0),
    (2, -100, 450, None, None, None, 0, 0),
    (4, 100, 550, "activation", "aten::mm", "/Net/fc", 7, 0),
    (5, 60, 610, "gradient", "aten::mm", "/Net/fc", 7, 0),
    (6, 40, 650, "gradient", "aten::mm", "/Net/fc", 7, 0),  # the peak of the first core
    (6, -40, 610, None, None, None, 0, 0),
    (3, -50, 560, None, None, None, 0, 0),
    (7, 90, 650, "optimizer", "aten::empty", "/optimizer (SGD)", 9, 0),  # as much again: the first one counts
]


def events(rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    address, size, held, category, operation, layer, line, core = map(list, zip(*rows))
    count = len(rows)
    return {
        "event_idx": list(range(count)), "timestamp": [5] * count,
        "kind": ["allocate" if category is not None else "free" for category in category], "address": address,
        "size": [abs(each) for each in size], "held_bytes": held, "category": category,
        "framework_name": operation, "layer": layer, "source_file": ["train.py"] * count, "source_line": line,
        "is_backward": [each == "gradient" for each in category], "pcore_idx": core,
        "process_idx": [0] * count,
    }  # fmt: skip


WEIGHT = {"address": [1], "name": ["Net.fc.weight"], "category": ["parameter"], "process_idx": [0]}


def holders(make_profile, tables):
    with neuron_tools.open_profile(make_profile(tables=tables)) as profile:
        return find_memory_holders(profile)


def test_what_is_held_at_the_first_peak_of_each_core_by_tensor_and_place(make_profile):
    assert holders(make_profile, {"MemoryEvent": events(EVENTS), "TensorName": WEIGHT}) == (
        MemoryHolder(0, 0, "parameter", "Net.fc.weight", "/Net/fc", "aten::empty", "train.py", 3, 1, 400),
        MemoryHolder(0, 0, "activation", "", "/Net/fc", "aten::mm", "train.py", 7, 1, 100),
        MemoryHolder(0, 0, "gradient", "", "/Net/fc", "aten::mm", "train.py", 7, 2, 100),
        MemoryHolder(0, 0, "activation", "", "/Net", "aten::relu", "train.py", 8, 1, 50),
        MemoryHolder(0, 1, "other", "", "/main()", "aten::empty", "train.py", 3, 1, 800),
    )


def test_categories_add_up_to_the_peak(make_profile):
    assert by_category(holders(make_profile, {"MemoryEvent": events(EVENTS)})) == (
        CategoryBytes(0, 0, "other", 1, 400, 400 / 650),
        CategoryBytes(0, 0, "activation", 2, 150, 150 / 650),
        CategoryBytes(0, 0, "gradient", 2, 100, 100 / 650),
        CategoryBytes(0, 1, "other", 1, 800, 1.0),
    )


@pytest.mark.parametrize("at_once", [1, 2, 3, 5])
def test_events_in_any_cut_tell_the_same_of_few_that_are_held(make_profile, monkeypatch, at_once):
    """A loop takes memory at new addresses all the time; what is held on the way stays few."""
    loop = [
        row
        for turn in range(20)
        for row in (
            (100 + turn, 10, 660, "activation", "aten::mul", "/Net", 8, 0),
            (100 + turn, -10, 650, None, None, None, 0, 0),
        )
    ]
    late = (50, 300, 950, "activation", "aten::mm", "/Net/fc", 7, 0)
    tables = {"MemoryEvent": events([*EVENTS, *loop, late]), "TensorName": WEIGHT}
    with neuron_tools.open_profile(make_profile(tables=tables)) as profile:
        expected = find_memory_holders(profile)
        monkeypatch.setattr(memory_holders, "EVENTS_AT_ONCE", at_once)
        queries = []
        query = type(profile).query

        def counting(self, text, *told):
            found = query(self, text, *told)
            queries.append(found.num_rows)
            return found

        monkeypatch.setattr(type(profile), "query", counting)
        assert find_memory_holders(profile) == expected
    assert [each.byte_count for each in expected][:2] == [400, 400]
    assert len(queries) > 10
    assert max(queries) <= 8


def test_a_place_is_the_users_line_that_called_generated_code(make_profile):
    stacks = {
        "StackFrame": {"id": ["1", "2"], "file_location_id": [1, 2], "parent_frame_id": ["", "1"]},
        "StackFrameFileLocation": {
            "id": ["1", "2"], "file_name_id": [1, 2], "function_name_id": [1, 1], "line_number": [42, 80]
        },
        "StackFrameFileName": {"id": ["1", "2"], "name": ["/home/me/train.py", "<eval_with_key>.13"]},
        "StackFrameFunctionName": {"id": ["1"], "name": ["forward"]},
    }  # fmt: skip
    event = events([(1, 100, 100, "gradient", "a", "", 80, 0)])
    event |= {"source_file": ["<eval_with_key>.13"], "stack_frame_ids": ["2"]}
    (found,) = holders(make_profile, {"MemoryEvent": event, **stacks})
    assert (found.file, found.line) == ("/home/me/train.py", 42)


def test_an_address_may_be_used_again(make_profile):
    again = [
        (1, 100, 100, "other", "a", "", 1, 0),
        (1, -100, 0, None, None, None, 0, 0),
        (1, 70, 70, "other", "b", "", 2, 0),
        (2, 80, 150, "other", "c", "", 3, 0),
    ]
    found = holders(make_profile, {"MemoryEvent": events(again)})
    assert [(each.operation, each.byte_count) for each in found] == [("c", 80), ("b", 70)]


def test_memory_whose_return_was_lost_is_given_back_with_the_next_at_its_address(make_profile, monkeypatch):
    """A damaged record is left out of a capture."""
    monkeypatch.setattr(memory_holders, "EVENTS_AT_ONCE", 2)
    rows = [
        (1, 10, 10, "other", "aten::empty", "", 3, 0),
        (3, 1, 11, "other", "aten::empty", "", 3, 0),
        (1, 10, 11, "other", "aten::empty", "", 3, 0),
        (1, -10, 1, None, None, None, 0, 0),
        (2, 500, 501, "activation", "aten::mm", "", 3, 0),
    ]
    found = holders(make_profile, {"MemoryEvent": events(rows)})
    assert [holder.byte_count for holder in found] == [500, 1]


def test_memory_of_one_address_on_several_cores_is_given_back_on_each(make_profile):
    shared = [
        (1, 100, 100, "other", "a", "", 1, 0),
        (1, 100, 100, "other", "a", "", 1, 1),
        (1, -100, 0, None, None, None, 0, 0),
        (2, 30, 130, "other", "b", "", 2, 1),
    ]
    found = holders(make_profile, {"MemoryEvent": events(shared)})
    assert [(each.core, each.operation) for each in found] == [(0, "a"), (1, "a"), (1, "b")]


def test_what_was_held_before_a_window_is_told_apart(make_profile):
    freed = (8, -30, 270, None, None, None, 0, 0)
    found = holders(make_profile, {"MemoryEvent": events([freed, (9, 100, 370, "other", "a", "", 1, 0)])})
    assert [(each.operation, each.byte_count) for each in found] == [("a", 100), (HELD_BEFORE, 270)]


def test_only_what_was_held_before_a_window(make_profile):
    (found,) = holders(make_profile, {"MemoryEvent": events([(8, -30, 270, None, None, None, 0, 0)])})
    assert (found.operation, found.tensors, found.byte_count) == (HELD_BEFORE, 0, 270)


def test_nobody_holds_nothing(make_profile):
    assert holders(make_profile, {"MemoryEvent": events([(1, 0, 0, "other", "a", "", 1, 0)])}) == ()


def test_a_profile_without_events_has_no_holders(make_profile):
    assert holders(make_profile, {}) == ()
