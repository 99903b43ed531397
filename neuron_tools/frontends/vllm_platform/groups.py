"""The requests of a step in the parts that attention computes, as the host knows them before the step.

A part is one batch of equal lengths. What fills it up, to the longest or to a shape that is compiled already,
is computed and not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Group:
    """Requests of one part.

    Attributes:
        first: The place of the first of them in the batch.
        starts: Where each one's tokens start in the batch, (requests) int64.
        counts: How many each has, (requests) int64.
        lengths: Tokens of each up to its last new one, or no fewer, (requests).
        shape: Requests and tokens of each that the part has, no fewer than there are.
    """

    first: int
    starts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    lengths: npt.NDArray[Any]
    shape: tuple[int, int]

    @property
    def size(self) -> int:
        """Tokens of the part."""
        return self.shape[0] * self.shape[1]

    def is_in_order(self, size: int) -> bool:
        """Whether the part's tokens are the first of a batch of that size, one after another."""
        return self.first == 0 and (self.shape[1] == 1 or self.shape == (1, size))

    def tokens(self) -> npt.NDArray[np.int64]:
        """Where each token stands in the batch, (requests, tokens)."""
        return self._filled(self.starts, int(self.starts[0])).astype(np.int64)

    def positions(self) -> npt.NDArray[np.int32]:
        """Each token's position in its request, (requests, tokens)."""
        return self._filled(self.lengths - self.counts, 0).astype(np.int32)

    def offsets(self) -> npt.NDArray[np.int32]:
        """Each token's position behind the last of its request, (requests, tokens)."""
        return self._filled(-self.counts, -1).astype(np.int32)

    def used(self) -> npt.NDArray[np.int64]:
        """Where the batch's tokens stand in the part, flat."""
        return np.flatnonzero(self._is_used())

    def _filled(self, begins: npt.NDArray[Any], filling: int) -> npt.NDArray[Any]:
        """Numbers from each request's own on; what fills the part up has another."""
        rows = np.zeros((self.shape[0], 1), np.int64)
        rows[: len(begins), 0] = begins
        return np.where(self._is_used(), rows + np.arange(self.shape[1]), filling)

    def _is_used(self) -> npt.NDArray[np.bool_]:
        counts = np.zeros((self.shape[0], 1), np.int64)
        counts[: len(self.counts), 0] = self.counts
        return np.arange(self.shape[1]) < counts


def split(
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[Any],
    decodes: int,
    longest_decode: int,
    size: int | None,
) -> list[Group]:
    """The parts of a batch: requests that decode, and the others behind them.

    Args:
        starts: Where each request's tokens start, and the end, (requests + 1).
        lengths: Of the requests, (requests).
        decodes: How many decode.
        longest_decode: Tokens that these have at most.
        size: Tokens of the compiled step; None for one that is not.
    """
    counts = np.diff(starts)
    cuts = (slice(0, decodes), slice(decodes, len(counts)))
    shapes = _shapes(counts[cuts[0]], counts[cuts[1]], longest_decode, size)
    return [
        Group(cut.start, starts[:-1][cut], counts[cut], lengths[cut], shape)
        for cut, shape in zip(cuts, shapes)
        if cut.stop > cut.start
    ]


def count_decodes(starts: npt.NDArray[np.int64], longest_decode: int) -> int:
    """How many requests at the start of a batch have no more tokens than a decode has."""
    return int(np.argmin(np.append(np.diff(starts) <= longest_decode, False)))


def places_of(groups: Sequence[Group], size: int) -> npt.NDArray[np.int64]:
    """Where each token of a batch stands in the parts one after another; 0 for what only fills it up."""
    begins = np.cumsum([0, *(group.size for group in groups)])
    used = np.concatenate([begin + group.used() for begin, group in zip(begins, groups)])
    return np.append(used, np.zeros(size - len(used), np.int64))


def rows_of(first: int, count: int, rows: int) -> npt.NDArray[np.int64]:
    """So many rows from the first on; the last of all in place of those that there are not."""
    return np.minimum(first + np.arange(count), rows - 1)


def power_of_two(number: int) -> int:
    """The least that is no less: programs are made for few numbers, not for each."""
    return 1 << max(number - 1, 0).bit_length() if number else 0


def _shapes(
    decodes: npt.NDArray[np.int64], longer: npt.NDArray[np.int64], longest_decode: int, size: int | None
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Requests and tokens of each, of both parts, from the tokens of their requests."""
    width, longest = int(decodes.max(initial=1)), int(longer.max(initial=1))
    if size is None:
        return (len(decodes), width), (len(longer), longest)
    if len(longer) == 0 and width == 1:
        return (size, 1), (0, 1)
    if len(decodes) + len(longer) == 1:
        return (1, size), (1, size)
    width = 1 if width == 1 else longest_decode
    return (min(power_of_two(len(decodes)), size), width), (power_of_two(len(longer)), power_of_two(longest))
