"""The requests of a step in parts, on the host."""

from __future__ import annotations

import numpy as np

from neuron_tools.frontends.vllm_platform.groups import Group, count_decodes, places_of, split


def parts_of(counts: list[int], longest_decode: int, size: int | None) -> list[Group]:
    starts = np.cumsum([0, *counts])
    lengths = np.array(counts) + 10
    return split(starts, lengths, count_decodes(starts, longest_decode), longest_decode, size)


def test_requests_with_any_number_of_drafts_are_one_part_of_a_compiled_step() -> None:
    several, full = (parts_of(counts, 4, 16) for counts in ([1, 3, 2], [4, 4, 4]))
    assert [group.shape for group in several] == [group.shape for group in full] == [(4, 4)]


def test_a_part_has_no_more_tokens_than_its_longest_request_where_no_shape_is_compiled() -> None:
    assert [group.shape for group in parts_of([1, 3, 9, 6], 4, None)] == [(2, 3), (2, 9)]


def test_requests_without_drafts_need_no_room_for_them() -> None:
    assert [group.shape for group in parts_of([1, 1, 5], 4, 8)] == [(2, 1), (1, 8)]


def test_each_token_of_the_batch_is_read_where_its_part_has_it() -> None:
    counts = [2, 1, 7, 5]
    groups = parts_of(counts, 3, 16)
    tokens = np.concatenate([group.tokens().flatten() for group in groups])
    assert tokens[places_of(groups, 16)][: sum(counts)].tolist() == list(range(sum(counts)))


def test_positions_are_those_behind_what_is_there_already() -> None:
    (group,) = parts_of([2, 3], 3, 8)
    assert group.positions().tolist() == [[10, 11, 0], [10, 11, 12]]
    assert group.offsets().tolist() == [[-2, -1, -1], [-3, -2, -1]]
