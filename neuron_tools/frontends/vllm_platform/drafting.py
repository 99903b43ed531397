"""PyTorch's operators in place of the Triton kernels by which vLLM prepares the model that drafts.

A model that drafts runs once for all tokens that the large one has just had, those included that were not
accepted, and then once for each further draft.
"""

from __future__ import annotations

import torch

from neuron_tools.frontends.vllm_platform.owners import owners_of


def choose_next(
    sampled: torch.Tensor, is_discarded: torch.Tensor, backup: torch.Tensor, chosen: torch.Tensor,
    counts: torch.Tensor, vocabulary: int, width: int, requests: int, stride: int, *sizes: int,
) -> None:  # fmt: skip
    """Fill `chosen` with the last token that each request has got, and `counts` with how many it has got.

    Args:
        sampled: Tokens of each request, (requests, width) int32; -1 for one that was not accepted.
        is_discarded: Requests whose tokens do not count, (at least requests) bool.
        backup: What such a request goes on with, (at least requests) int32.
        chosen: What is filled, (requests) int32.
        counts: Likewise.
        vocabulary: Tokens that there are.
        width: Columns of `sampled`.
        requests: Its rows.
        stride: Elements from row to row, which the tensor knows.
        sizes: Of the kernel's blocks.
    """
    is_valid = (sampled >= 0) & (sampled < vocabulary) & ~is_discarded[:requests, None]
    ends = (is_valid * torch.arange(1, width + 1, device=sampled.device)).amax(1)
    last = sampled.gather(1, (ends - 1).clamp(min=0)[:, None])[:, 0]
    chosen.copy_(torch.where(ends > 0, last.to(backup.dtype), backup[:requests]))
    counts.copy_(is_valid.sum(1))


def find_last(
    ends: torch.Tensor, counts: torch.Tensor, starts: torch.Tensor, places: torch.Tensor,
    rejected: torch.Tensor, requests: int,
) -> None:  # fmt: skip
    """Fill `places` with where each request's last accepted token stands, `rejected` with how many were not.

    Args:
        ends: Where each request's drafts end, (requests) int32.
        counts: How many tokens each has got, (requests) int32.
        starts: Where each request's tokens start, and the end, (requests + 1) int32.
        places: What is filled, (requests) int32.
        rejected: Likewise.
        requests: How many there are.
    """
    drafts = ends.diff(prepend=ends.new_zeros(1))
    rejected.copy_(torch.where(drafts > 0, drafts + 1 - counts, 0))
    places.copy_(starts[1 : requests + 1] - 1 - rejected)


def advance(
    positions: torch.Tensor, block_table: torch.Tensor, stride: int, lengths: torch.Tensor,
    following: torch.Tensor, slots: torch.Tensor, block_size: int, most: int, pages: int, no_slot: int,
    requests: int,
) -> None:  # fmt: skip
    """Go to each request's next token: its position, its slot, and the request's length.

    Args:
        positions: Where each request is, (requests) int64.
        block_table: Each request's pages, (requests, pages) int32.
        stride: Elements from row to row, which the tensor knows.
        lengths: Tokens of each request, which are changed, (requests) int32.
        following: The positions that are filled in, (requests) int64.
        slots: Likewise, (at least requests) int64.
        block_size: Tokens of a page.
        most: Tokens of the longest request that there may be.
        pages: Columns of `block_table`.
        no_slot: The slot of what is not to be written.
        requests: How many there are.
    """
    is_over = positions + 1 >= most
    after = torch.where(is_over, 0, positions + 1)
    page = block_table.gather(1, (after // block_size).clamp(max=pages - 1)[:, None])[:, 0]
    slots[requests:] = no_slot
    slots[:requests] = torch.where(is_over, no_slot, page * block_size + after % block_size)
    lengths.copy_(torch.where(is_over, 1, lengths + 1).clamp(max=most))
    following.copy_(after)


def insert_next(
    tokens: torch.Tensor, positions: torch.Tensor, following: torch.Tensor, out_tokens: torch.Tensor,
    out_positions: torch.Tensor, is_rejected: torch.Tensor, is_masked: torch.Tensor, out_places: torch.Tensor,
    hidden_places: torch.Tensor, starts: torch.Tensor, lasts: torch.Tensor, padding: int, mask: int,
    count: int, added: int, is_shifted: bool, *sizes: int,
) -> None:  # fmt: skip
    """Copy each request's accepted tokens and the next one behind them, and room for further drafts.

    Args:
        tokens: The large model's, (tokens) int32.
        positions: Theirs, (tokens) int64.
        following: The next token of each request, (requests) int32.
        out_tokens: What is filled with each request's accepted tokens, its next one, masks, and padding for
            those not accepted, (at least tokens + added) int32.
        out_positions: Likewise, int64.
        is_rejected: Likewise: which are padding.
        is_masked: Likewise: which are masks.
        out_places: Where next tokens and masks stand, (requests * added) int32.
        hidden_places: Where each of `tokens` has gone if they are shifted, (tokens) int32.
        starts: Where each request's tokens start, and the end, (requests + 1) int32.
        lasts: Where its last accepted one stands, (requests) int32.
        padding: The token for those not accepted.
        mask: The token for drafts that are made at once.
        count: How many `tokens` there are.
        added: Next token and masks of each request.
        is_shifted: Whether each request's first token is left out.
        sizes: Of the kernel's blocks.
    """
    requests, shift = lasts.shape[0], int(is_shifted)
    numbers = torch.arange(requests, device=starts.device)
    first = starts[:-1] + numbers * (added - shift)
    accepted = lasts - starts[:-1] + 1 - shift
    size = count + requests * (added - shift)
    owners = owners_of(starts[1:] + (numbers + 1) * (added - shift), size)
    own = torch.arange(size, device=starts.device) - first[owners]  # place among the request's
    behind = own - accepted[owners]
    taken = tokens[(starts[owners] + shift + own).clamp(max=count - 1)]
    found = torch.where(behind == 0, following[owners].to(taken.dtype), torch.where(behind < 0, taken, mask))
    rejected = behind >= added
    out_tokens[:size] = torch.where(rejected, padding, found)
    out_positions[:size] = torch.where(rejected, 0, positions[starts[owners]] + own)
    is_rejected[:size] = rejected
    is_masked[:size] = (behind > 0) & ~rejected
    places = (first + accepted)[:, None] + torch.arange(added, device=starts.device)
    out_places.copy_(places.flatten())
    if is_shifted:
        before = owners_of(starts[1:], count)
        hidden_places.copy_(torch.arange(count, device=starts.device) + before * (added - 1))
