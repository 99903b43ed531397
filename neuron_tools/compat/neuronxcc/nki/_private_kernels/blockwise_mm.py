"""`neuronxcc.nki._private_kernels.blockwise_mm`: what kernels of experts may skip, without the kernels."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SkipMode"]


@dataclass(frozen=True)
class SkipMode:
    """Which transfers are left out for blocks that stand for no token.

    Attributes:
        skip_token: Those of tokens.
        skip_weight: Those of experts' weights.
    """

    skip_token: bool = False
    skip_weight: bool = False
