"""What a model that drafts is given, against loops over requests."""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.vllm_platform.drafting import advance, choose_next, find_last, insert_next

NO_SLOT, MASK = -1, -5


def test_a_request_goes_on_with_its_last_accepted_token_or_with_the_one_it_had() -> None:
    sampled = torch.tensor(
        [[5, 6, -1], [7, -1, -1], [8, 9, 4], [-1, -1, -1], [99, -1, -1]], dtype=torch.int32
    )
    discarded = torch.tensor([False, False, True, False, False, True])
    backup = torch.tensor([1, 2, 3, 4, 5, 6], dtype=torch.int32)
    chosen, counts = torch.zeros(5, dtype=torch.int32), torch.zeros(5, dtype=torch.int32)
    choose_next(sampled, discarded, backup, chosen, counts, 50, 3, 5, 3, 4)
    assert (chosen.tolist(), counts.tolist()) == ([6, 7, 3, 4, 5], [2, 1, 0, 0, 0])


def test_a_request_without_drafts_has_none_rejected() -> None:
    ends, counts = torch.tensor([3, 3, 5]), torch.tensor([2, 0, 3])  # 3, 0 and 2 drafts
    places, rejected = torch.zeros(3, dtype=torch.int32), torch.zeros(3, dtype=torch.int32)
    find_last(ends, counts, torch.tensor([0, 4, 9, 12]), places, rejected, 3)
    assert (places.tolist(), rejected.tolist()) == ([1, 8, 11], [2, 0, 0])


def test_the_next_token_has_the_slot_behind_and_none_past_the_longest_request() -> None:
    positions, lengths = torch.tensor([6, 3, 15]), torch.tensor([7, 4, 16], dtype=torch.int32)
    table = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]], dtype=torch.int32)
    slots = torch.zeros(5, dtype=torch.int64)
    advance(positions, table, 4, lengths, positions, slots, 4, 16, 4, NO_SLOT, 3)
    assert positions.tolist() == [7, 4, 0]
    assert lengths.tolist() == [8, 5, 1]
    assert slots.tolist() == [2 * 4 + 3, 6 * 4, NO_SLOT, NO_SLOT, NO_SLOT]


def inserted(added: int, is_shifted: bool) -> dict[str, list[Any]]:
    """What two requests are given: one with one of three tokens rejected, one with none of two."""
    size = 5 + 2 * (added - int(is_shifted))
    filled = {
        "tokens": torch.zeros(size, dtype=torch.int32),
        "positions": torch.zeros(size, dtype=torch.int64),
        "is_rejected": torch.zeros(size, dtype=torch.bool),
        "is_masked": torch.zeros(size, dtype=torch.bool),
        "places": torch.zeros(2 * added, dtype=torch.int32),
        "hidden_places": torch.zeros(5, dtype=torch.int32),
    }
    insert_next(
        torch.tensor([11, 12, 13, 21, 22]),
        torch.tensor([5, 6, 7, 0, 1]),
        torch.tensor([19, 29], dtype=torch.int32),
        *filled.values(),
        torch.tensor([0, 3, 5]),
        torch.tensor([1, 4]),
        0,
        MASK,
        5,
        added,
        is_shifted,
    )
    return {name: each.tolist() for name, each in filled.items()}


def test_a_draft_model_gets_each_requests_next_token_behind_those_accepted() -> None:
    found = inserted(1, False)
    assert found["tokens"] == [11, 12, 19, 0, 21, 22, 29]
    assert found["positions"] == [5, 6, 7, 0, 0, 1, 2]
    assert found["is_rejected"] == [token == 0 for token in found["tokens"]]
    assert found["places"] == [2, 6]
    assert not any(found["is_masked"])


def test_drafts_made_at_once_have_masks_behind_the_next_token() -> None:
    found = inserted(3, True)
    assert found["tokens"] == [12, 19, MASK, MASK, 0, 22, 29, MASK, MASK]
    assert found["is_masked"] == [token == MASK for token in found["tokens"]]
    assert found["places"] == [1, 2, 3, 6, 7, 8][: len(found["places"])]
    assert found["hidden_places"] == [0, 1, 2, 5, 6]
