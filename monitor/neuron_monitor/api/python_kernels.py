"""The monitor's inner loops in Python, for where `_kernels.c`, which does the same, could not be built.

Words are little-endian signed 64-bit integers. Counters are tuples of equal length.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby
from typing import Any

__all__ = (
    "added",
    "core_rates",
    "interleaved",
    "parse_count",
    "processor_ticks",
    "reached_at",
    "read_page",
    "refresh",
    "table",
    "window_numbers",
    "words",
)
READ_BYTES = 64
WORD_BYTES = 8
PROCESS_STAT_BYTES = 1 << 10
# A number of fewer digits fits into a signed word.
_MOST_DIGITS = 19
_USER_TICKS = 11
_SYSTEM_TICKS = 12
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


def table(
    data: bytes, start: int, rows: int, width: int, offsets: Sequence[int], extra: int
) -> tuple[list[Counts], bytes]:
    """A table of rows that each end with `extra` columns to be summed.

    Args:
        start: Of the first row, in words.
        width: Words of a row before those to be summed.
        offsets: Which of these words are wanted, and in which order.

    Returns:
        The wanted words of each row, and the sums as words again.

    Raises:
        ValueError: There are not so many words.
    """
    stride = width + extra
    if min(rows, width, extra) < 0 or any(not 0 <= offset < width for offset in offsets):
        raise ValueError("there are not so many words")
    found = [words(data, start + row * stride, stride) for row in range(rows)]
    sums = [sum(column) for column in zip(*(row[width:] for row in found))] if rows else [0] * extra
    return [tuple([row[offset] for offset in offsets]) for row in found], struct.pack(f"<{extra}q", *sums)


def interleaved(pieces: list[bytes], numbers: bytes, texts: Mapping[int, bytes]) -> bytes:
    """Text pieces with values between them.

    Args:
        pieces: One more than there are values.
        numbers: The values as a JSON list.
        texts: What stands for a value instead, by its position, in rising order.
    """
    values = numbers[1:-1].split(b",") if len(pieces) > 1 else []
    for position, text in texts.items():
        values[position] = text
    parts = [b""] * (2 * len(values) + 1)
    parts[::2] = pieces
    parts[1::2] = values
    return b"".join(parts)


def added(before: Counts, after: Counts, start: int, stop: int) -> Counts:
    """What the columns from `start` to `stop` added; where one was reset, what was counted since then.

    Raises:
        OverflowError: A counter is beyond 64 bits; only the compiled kernel raises it.
    """
    pairs = zip(before[start:stop], after[start:stop])
    return tuple([now - was if now >= was else now for was, now in pairs])


def core_rates(
    before: Counts, after: Counts, elapsed_ns: float, columns: tuple[int, ...]
) -> tuple[float, float, tuple[float, ...], tuple[float, ...], float]:
    """What a core did between two looks at its counters.

    Args:
        elapsed_ns: Above 0.
        columns: Of the busy time in µs, FLOP and throttled ns; then first and end of the engines' busy time
            and of the traffic.

    Returns:
        Busy share, FLOP a second, share of each engine, bytes a second of each kind, throttled share. Shares
        are kept within 0 and 1, rates above 0: two nodes are never read at quite the same moment.

    Raises:
        OverflowError: A counter is beyond 64 bits; only the compiled kernel raises it.
    """
    busy, flops, throttled, engines, engines_stop, traffic, traffic_stop = columns[:7]
    difference = list(map(int.__sub__, after, before))
    per_second = 1e9 / elapsed_ns
    shares = tuple([_share(part, elapsed_ns) for part in difference[engines:engines_stop]])
    rates = tuple([max(0, moved) * per_second for moved in difference[traffic:traffic_stop]])
    return (
        _share(1000 * difference[busy], elapsed_ns),
        max(0, difference[flops]) * per_second,
        shares,
        rates,
        _share(difference[throttled], elapsed_ns),
    )


def window_numbers(
    before: Mapping[int, Any],
    after: Mapping[int, Any],
    elapsed_ns: float,
    columns: tuple[int, ...],
    size: int,
    copies: int,
) -> tuple[list[float], list[float | None], int]:
    """What the cores of one process did between two looks, as a report has it.

    Args:
        before: Readings of its cores, by physical core id.
        after: The same later, by rising id. A core that was not there did nothing if its counts are its own,
            and all of them if they are the process's.
        columns: As `core_rates` has them; then those of the executions that ended well, and the end of those
            that ended otherwise.
        size: Physical cores of a logical one.
        copies: How often FLOP a second are told.

    Returns:
        Of each logical core: busy percent, FLOP a second, and with a size above 1 busy percent of each
        physical one; percent of each engine, whole bytes a second of each kind of traffic, percent throttled,
        or None where the driver does not tell them. Then the executions that ended well, -1 where others
        ended too.
    """
    success, stop = columns[7:]
    counters: list[float] = []
    activity: list[float | None] = []
    completed = 0
    for _, group in groupby(after.items(), key=lambda item: item[0] // size):
        rates = []
        for core_id, reading in group:
            was, new = before.get(core_id), reading.counts
            old = was.counts if was is not None else (0,) * len(new) if reading.is_clocked else new
            is_idle = elapsed_ns <= 0 or new[columns[0]] < old[columns[0]]
            rates.append(core_rates(new if is_idle else old, new, max(elapsed_ns, 1), columns))
            same = old[success + 1 : stop] == new[success + 1 : stop] and new[success] >= old[success]
            completed = completed + new[success] - old[success] if same and completed >= 0 else -1
        count = len(rates)
        counters.append(100 * sum(each[0] for each in rates) / count)
        counters += [int(sum(each[1] for each in rates))] * copies
        if size > 1:
            counters += [100 * each[0] for each in rates]
        if not reading.is_clocked:
            activity.append(None)
            continue
        activity += [100 * sum(shares) / count for shares in zip(*(each[2] for each in rates))]
        activity += [int(sum(amounts)) for amounts in zip(*(each[3] for each in rates))]
        activity.append(100 * sum(each[4] for each in rates) / count)
    return counters, activity, completed


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


def read_page(descriptor: int, size: int) -> bytes | None:
    """The bytes of an open page of counters, if it is not being written and no longer than `size`.

    Its second word is odd while it is written, and another one afterwards; the third is its length in words.

    Raises:
        OSError: It cannot be read.
    """
    data = os.pread(descriptor, size, 0)
    if len(data) < 3 * WORD_BYTES:
        return None
    _, sequence, count = words(data, 0, 3)
    if sequence & 1 or not 0 <= count * WORD_BYTES <= len(data):
        return None
    again = os.pread(descriptor, WORD_BYTES, WORD_BYTES)
    return data if again == data[WORD_BYTES : 2 * WORD_BYTES] else None


def processor_ticks(descriptors: list[int]) -> list[tuple[int, int] | None]:
    """Clock ticks in user mode and in the kernel of processes whose `/proc/PID/stat` is open.

    Returns:
        None where the file cannot be read, because the process has ended or the descriptor is below 0.
    """
    return list(map(_ticks, descriptors))


def _ticks(descriptor: int) -> tuple[int, int] | None:
    try:
        return parse_ticks(os.pread(descriptor, PROCESS_STAT_BYTES, 0))
    except (OSError, ValueError):
        return None


def parse_ticks(text: bytes) -> tuple[int, int]:
    """The ticks in the text of `/proc/PID/stat`: fields 14 and 15, counted behind the name.

    Raises:
        ValueError: It is cut off.
    """
    fields = text.rpartition(b")")[2].split(None, _SYSTEM_TICKS + 1)
    if len(fields) <= _SYSTEM_TICKS:
        raise ValueError("cut off")
    return int(fields[_USER_TICKS]), int(fields[_SYSTEM_TICKS])


def refresh(
    descriptors: list[int], texts: list[bytes], values: list[int], limits: list[int], positions: list[int]
) -> tuple[list[int], list[tuple[int, bytes | None]]]:
    """Read open nodes from their start, and keep their new texts and values in the lists.

    Args:
        descriptors: By position; below 0 where a file is not open.
        texts: What stood there the last time, by position.
        values: The numbers that stood there.
        limits: The largest number that each can have.
        positions: Which to read.

    Returns:
        The positions whose number changed; and (position, first 64 bytes) of those where something else
        stands than a plain number within its limit, None where reading failed: these keep what they had.
    """
    changed: list[int] = []
    others: list[tuple[int, bytes | None]] = []
    for position in positions:
        try:
            text = os.pread(descriptors[position], READ_BYTES, 0)
        except OSError:
            others.append((position, None))
            continue
        if text and text == texts[position]:
            continue
        line = text.partition(b"\n")[0]
        if not (0 < len(line) < _MOST_DIGITS and line.isdigit()) or int(line) > limits[position]:
            others.append((position, text))
            continue
        texts[position] = text
        if int(line) != values[position]:
            values[position] = int(line)
            changed.append(position)
    return changed, others


def parse_count(text: bytes) -> int | None:
    """The number on a node's first line; None where there is none.

    Only the first line counts: a simulated node that got shorter may still carry the rest of the old text.
    """
    line = text.partition(b"\n")[0].strip()
    # Not int() alone: it also takes "1_000" and "+1", which no driver prints.
    return int(line) if line.removeprefix(b"-").isdigit() else None


def _check(data: bytes, start: int, count: int) -> None:
    if start < 0 or count < 0 or (start + count) * WORD_BYTES > len(data):
        raise ValueError("there are not so many words")
