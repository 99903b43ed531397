"""Inputs and weights as archives write them: "float32[2,3]"."""

from __future__ import annotations

import torch


def describe(value: torch.Tensor) -> str:
    """A tensor's element type and shape."""
    return f"{str(value.dtype).removeprefix('torch.')}[{','.join(map(str, value.shape))}]"


def shape_of(text: str) -> tuple[int, ...]:
    """(2, 3) of "float32[2,3]"."""
    inside = text[text.index("[") + 1 : -1]
    return tuple(int(extent) for extent in inside.split(",") if extent)
