"""Whether a thread's program chose its device, which may be the one that it starts with.

`torch.neuron` and `torch.accelerator` both choose; PyTorch's own guards, which follow the tensors, do not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch


class Choice(threading.local):
    """The calling thread's.

    Attributes:
        is_made: Whether there is one, by a function or by a block.
    """

    def __init__(self) -> None:
        self.is_made = False
        self._outside: list[bool] = []

    def make(self, index: Any) -> None:
        """Note what a function was called with: a negative number chooses nothing."""
        self.is_made |= not (isinstance(index, int) and index < 0)

    def enter(self, index: int | None) -> None:
        """Note that a block begins, of a device or of none."""
        self._outside.append(self.is_made)
        self.is_made |= index is not None and index >= 0

    def leave(self) -> None:
        """Note that it ends: what was chosen before it holds again."""
        self.is_made = self._outside.pop()


CHOICE = Choice()


def install() -> None:
    """Let choices by `torch.accelerator` count."""
    accelerator = torch.accelerator
    for name in ("set_device_index", "set_device_idx"):
        setattr(accelerator, name, _choosing(getattr(accelerator, name)))
    # Dynamo knows the class itself, so its methods are replaced.
    block = accelerator.device_index
    block.__enter__ = _entering(block.__enter__)
    block.__exit__ = _leaving(block.__exit__)


def _choosing(set_device: Callable[[Any], None]) -> Callable[[Any], None]:
    @wraps(set_device)
    def choosing(device: Any, /) -> None:
        set_device(device)
        CHOICE.make(device)

    return choosing


def _entering(enter: Callable[[Any], None]) -> Callable[[Any], None]:
    @wraps(enter)
    def entering(block: Any) -> None:
        enter(block)
        CHOICE.enter(block.idx)

    return entering


def _leaving(leave: Callable[..., None]) -> Callable[..., None]:
    @wraps(leave)
    def leaving(block: Any, *error: object) -> None:
        CHOICE.leave()
        leave(block, *error)

    return leaving
