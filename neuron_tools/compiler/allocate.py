"""Allocation of on-chip memory: byte ranges of a partition, each remembering who used it last.

A range is handed out together with the tokens that must be complete before it may be overwritten, so
reuse is always ordered. Ranges are searched from where the last search ended: the range that has been
free longest comes first, and a new tile rarely waits for the one just released.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from neuron_tools.errors import NeuronToolsError


class OutOfOnChipMemory(NeuronToolsError):
    """A tile does not fit; code generation answers with smaller tiles."""


@dataclass(frozen=True, slots=True)
class Block:
    """An allocated byte range; `tokens` (stream -> token) must be complete before it is written."""

    address: int
    size: int
    tokens: Mapping[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Free:
    start: int
    end: int
    tokens: dict[int, int]


def latest(first: Mapping[int, int], second: Mapping[int, int]) -> dict[int, int]:
    """Both sets of tokens, the later one of each stream (streams complete in order).

    Instruction tokens count up; DMA tokens are negative and count down.
    """
    merged = dict(first)
    for stream, token in second.items():
        known = merged.get(stream)
        merged[stream] = token if known is None else (min if token < 0 else max)(known, token)
    return merged


class Allocator:
    """Allocates ranges of `capacity` bytes (per partition), aligned to `alignment` bytes."""

    def __init__(self, capacity: int, alignment: int = 32) -> None:
        self.capacity = capacity
        self.peak = 0
        self._alignment = alignment
        self._free = [_Free(0, capacity, {})]
        self._position = 0

    @property
    def free_bytes(self) -> int:
        """Bytes not handed out."""
        return sum(item.end - item.start for item in self._free)

    def largest(self) -> int:
        """Size of the largest range that can be handed out now."""
        best = size = 0
        previous_end = -1
        for item in self._free:
            size = size + item.end - item.start if item.start == previous_end else item.end - item.start
            previous_end = item.end
            best = max(best, size)
        return best

    def allocate(self, size: int) -> Block:
        """Hand out `size` bytes.

        Raises:
            OutOfOnChipMemory: No free range is large enough.
        """
        size = max(self._alignment, -(-size // self._alignment) * self._alignment)
        count = len(self._free)
        starts = sorted(range(count), key=lambda i: (self._free[i].start < self._position, i))
        for first in starts:
            last = self._reach(first, size)
            if last is not None:
                return self._take(first, last, size)
        raise OutOfOnChipMemory(
            f"{size} bytes per partition are asked for and {self.largest()} of {self.capacity} are free in "
            "one piece; use smaller tiles."
        )

    def release(self, block: Block, tokens: Mapping[int, int]) -> None:
        """Give a range back; `tokens` are its last uses."""
        item = _Free(block.address, block.address + block.size, latest(block.tokens, tokens))
        index = next((i for i, free in enumerate(self._free) if free.start > item.start), len(self._free))
        self._free.insert(index, item)
        if len(self._free) > 64:
            self._join()

    def _reach(self, first: int, size: int) -> int | None:
        """The last of the adjacent free ranges from `first` that together hold `size` bytes."""
        total = 0
        for index in range(first, len(self._free)):
            item = self._free[index]
            if index > first and item.start != self._free[index - 1].end:
                return None
            total += item.end - item.start
            if total >= size:
                return index
        return None

    def _take(self, first: int, last: int, size: int) -> Block:
        start = self._free[first].start
        tokens: dict[int, int] = {}
        for item in self._free[first : last + 1]:
            tokens = latest(tokens, item.tokens)
        rest = _Free(start + size, self._free[last].end, self._free[last].tokens)
        self._free[first : last + 1] = [rest] if rest.end > rest.start else []
        self._position = start + size
        self.peak = max(self.peak, self.capacity - self.free_bytes)
        return Block(start, size, tokens)

    def _join(self) -> None:
        """Merge adjacent free ranges: fewer ranges, at the price of a few more waits."""
        joined: list[_Free] = []
        for item in self._free:
            if joined and joined[-1].end == item.start:
                joined[-1].end = item.end
                joined[-1].tokens = latest(joined[-1].tokens, item.tokens)
            else:
                joined.append(item)
        self._free = joined
