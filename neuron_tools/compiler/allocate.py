"""Allocation of on-chip memory: byte ranges of a partition, each remembering who used it last.

A range is handed out together with the tokens that must be complete before it may be overwritten, so
reuse is always ordered. Ranges are searched from where the last search ended: the range that has been
free longest comes first, and a new tile rarely waits for the one just released. Which range is chosen
depends only on what is in use and on where the last search ended, never on who used it before: a section
of code compiled once fits anywhere.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import field

from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen


class OutOfOnChipMemory(NeuronToolsError):
    """A tile does not fit; code generation answers with smaller tiles."""


@frozen
class Block:
    """An allocated byte range; `tokens` (stream -> token) must be complete before it is written."""

    address: int
    size: int
    tokens: Mapping[int, int] = field(default_factory=dict)


def latest(first: Mapping[int, int], second: Mapping[int, int]) -> dict[int, int]:
    """Both sets of tokens, the later one of each stream (streams complete in order).

    Instruction tokens count up; DMA tokens are negative and count down.
    """
    merged = dict(first)
    for stream, token in second.items():
        known = merged.get(stream)
        merged[stream] = token if known is None else (min if token < 0 else max)(known, token)
    return merged


class LastUses:
    """For every byte of a partition the tokens of its last use; `unused` where there was none."""

    def __init__(self, capacity: int, unused: Mapping[int, int] | None = None) -> None:
        self._starts = [0, capacity]
        self._tokens: list[Mapping[int, int]] = [unused or {}, {}]

    def of(self, start: int, end: int) -> dict[int, int]:
        """Tokens of the last uses of any byte of a range."""
        tokens: dict[int, int] = {}
        index = bisect_right(self._starts, start) - 1
        while self._starts[index] < end:
            tokens = latest(tokens, self._tokens[index])
            index += 1
        return tokens

    def set(self, start: int, end: int, tokens: Mapping[int, int]) -> None:
        """Replace what is known of a range."""
        first = self._cut(start)
        last = self._cut(end)
        self._starts[first:last] = [start]
        self._tokens[first:last] = [tokens]

    def pieces(self) -> Iterator[tuple[int, int, Mapping[int, int]]]:
        """(start, end, tokens) of every piece of the partition that has been used."""
        for index, tokens in enumerate(self._tokens[:-1]):
            if tokens:
                yield self._starts[index], self._starts[index + 1], tokens

    def _cut(self, address: int) -> int:
        """Index of the piece that starts at an address, made if there is none."""
        index = bisect_right(self._starts, address) - 1
        if self._starts[index] == address:
            return index
        self._starts.insert(index + 1, address)
        self._tokens.insert(index + 1, self._tokens[index])
        return index + 1


class Allocator:
    """Allocates ranges of `capacity` bytes (per partition), aligned to `alignment` bytes."""

    def __init__(self, capacity: int, alignment: int = 32) -> None:
        self.capacity = capacity
        self.alignment = alignment
        self.peak = 0
        self.last_uses = LastUses(capacity)
        self._free = [(0, capacity)]
        self._position = 0

    @property
    def free_bytes(self) -> int:
        """Bytes not handed out."""
        return sum(end - start for start, end in self._free)

    def largest(self) -> int:
        """Size of the largest range that can be handed out now."""
        return max((end - start for start, end in self._free), default=0)

    def allocate(self, size: int, *, at_end: bool = False) -> Block:
        """Hand out `size` bytes; `at_end`: as far up as possible, out of the way of what comes and goes.

        Raises:
            OutOfOnChipMemory: No free range is large enough.
        """
        size = max(self.alignment, -(-size // self.alignment) * self.alignment)
        start = self._find_last(size) if at_end else self._find(size)
        if start is None:
            raise OutOfOnChipMemory(
                f"{size} bytes per partition are asked for and {self.largest()} of {self.capacity} are free "
                "in one piece; use smaller tiles."
            )
        position = self._position
        self._take(start, start + size)
        if at_end:
            self._position = position
        return Block(start, size, self.tokens_of(start, start + size))

    def release(self, block: Block, tokens: Mapping[int, int]) -> None:
        """Give a range back; `tokens` are its last uses."""
        start, end = block.address, block.address + block.size
        self.last_uses.set(start, end, latest(block.tokens, tokens))
        index = bisect_right(self._free, (start, end))
        before = self._free[index - 1] if index else None
        after = self._free[index] if index < len(self._free) else None
        if after is not None and after[0] == end:
            end = after[1]
            del self._free[index]
        if before is not None and before[1] == start:
            start = before[0]
            del self._free[index - 1]
            index -= 1
        self._free.insert(index, (start, end))

    def tokens_of(self, start: int, end: int) -> Mapping[int, int]:
        """What must be complete before a range may be overwritten."""
        return self.last_uses.of(start, end)

    def _find(self, size: int) -> int | None:
        """The first address from the last search's end on, else from 0 on, with `size` free bytes."""
        for start, end in self._free:
            candidate = max(start, self._position)
            if end - candidate >= size:
                return candidate
        return next((start for start, end in self._free if end - start >= size), None)

    def _find_last(self, size: int) -> int | None:
        """The last address with `size` free bytes."""
        return next((end - size for start, end in reversed(self._free) if end - start >= size), None)

    def _take(self, start: int, end: int) -> None:
        index = bisect_right(self._free, (start, self.capacity)) - 1
        free_start, free_end = self._free[index]
        rest = [(free_start, start), (end, free_end)]
        self._free[index : index + 1] = [piece for piece in rest if piece[1] > piece[0]]
        self._position = end
        self.peak = max(self.peak, self.capacity - self.free_bytes)
