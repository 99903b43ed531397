"""Which request of a step each token belongs to."""

from __future__ import annotations

import torch


def owners_of(ends: torch.Tensor, count: int) -> torch.Tensor:
    """The request of each token, (tokens) int64: as many as have ended where it stands.

    Args:
        ends: Where each request's tokens end, (requests).
        count: Tokens.
    """
    tokens = torch.arange(count, device=ends.device)
    return (tokens[:, None] >= ends).sum(1)
