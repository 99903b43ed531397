"""The monitor's inner loops in Python, for where `_kernels.c`, which does the same, could not be built.

Words are little-endian signed 64-bit integers. Counters are tuples of equal length.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

READ_BYTES = 64
WORD_BYTES = 8
# Percentile 0 is the first bound that any execution reached.
_REACHED_BY_ONE = 0.5
Counts = tuple[int, ...]


def words(data: bytes, start: int, count: int) -> Counts:
    """Words that follow each other.

    Raises:
        ValueError: There are not so many.
    """
    _check(data, start, count)
    return struct.unpack_from(f"<{count}q", data, start * WORD_BYTES)


def chosen_words(data: bytes, start: int, offsets: Sequence[int]) -> Counts:
    """Words at offsets behind a start.

    Raises:
        ValueError: There are not so many.
    """
    row = words(data, start, max(offsets) + 1)
    return tuple(map(row.__getitem__, offsets))


def added_words(data: bytes, start: int, count: int, stride: int, rows: int) -> bytes:
    """The sums, column by column, of `rows` rows that stand `stride` words apart, as words again.

    Raises:
        ValueError: There are not so many.
    """
    found = words(data, start, count)
    for row in range(1, rows):
        found = tuple(map(int.__add__, found, words(data, start + row * stride, count)))
    return struct.pack(f"<{count}q", *found)


def core_rates(
    before: Counts, after: Counts, elapsed_ns: float, columns: tuple[int, ...]
) -> tuple[float, float, tuple[float, ...], tuple[float, ...], float]:
    """What a core did between two looks at its counters.

    Args:
        columns: Of the busy time in µs, FLOP and throttled ns; then first and end of the engines' busy time
            and of the traffic.

    Returns:
        Busy share, FLOP a second, share of each engine, bytes a second of each kind, throttled share. Shares
        are kept within 0 and 1, rates above 0: two nodes are never read at quite the same moment.

    Raises:
        OverflowError: A counter is beyond 64 bits; only the compiled kernel raises it.
    """
    busy, flops, throttled, engines, engines_stop, traffic, traffic_stop = columns
    added = list(map(int.__sub__, after, before))
    per_second = 1e9 / elapsed_ns
    return (
        _share(1000 * added[busy], elapsed_ns),
        max(0, added[flops]) * per_second,
        tuple([_share(part, elapsed_ns) for part in added[engines:engines_stop]]),
        tuple([max(0, moved) * per_second for moved in added[traffic:traffic_stop]]),
        _share(added[throttled], elapsed_ns),
    )


def _share(part: float, whole: float) -> float:
    return 0.0 if part <= 0 else 1.0 if part >= whole else part / whole


def reached_at(before: bytes, after: bytes, shares: tuple[float, ...]) -> tuple[int, ...]:
    """The positions at which the counts that were added, summed from the first on, reach shares of their sum.

    Args:
        before: Counts as words, b"" for none.
        after: As many.
        shares: Rising, from 0 (the first count) to 1.

    Returns:
        (): Nothing was added.

    Raises:
        ValueError: There are not as many counts before as after.
    """
    if before and len(before) != len(after):
        raise ValueError("not the same bounds")
    new = words(after, 0, len(after) // WORD_BYTES)
    old = words(before, 0, len(before) // WORD_BYTES) or (0,) * len(new)
    reached = list(accumulate([max(0, count - was) for was, count in zip(old, new)]))
    if not reached or not reached[-1]:
        return ()
    return tuple([bisect_left(reached, share * reached[-1] or _REACHED_BY_ONE) for share in shares])


def read_changed(
    descriptors: list[int], texts: list[bytes], positions: list[int]
) -> list[tuple[int, bytes | None]]:
    """Read open files from their start.

    Args:
        descriptors: By position; below 0 where a file is not open.
        texts: What stood there the last time, by position.
        positions: Which to read.

    Returns:
        (position, first 64 bytes) of those that are not what they were; None where reading failed.
    """
    found: list[tuple[int, bytes | None]] = []
    for position in positions:
        try:
            text = os.pread(descriptors[position], READ_BYTES, 0)
        except OSError:
            found.append((position, None))
            continue
        if text != texts[position]:
            found.append((position, text))
    return found


def _check(data: bytes, start: int, count: int) -> None:
    if start < 0 or count < 0 or (start + count) * WORD_BYTES > len(data):
        raise ValueError("there are not so many words")
