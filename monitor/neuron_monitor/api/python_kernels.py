"""The monitor's inner loops in Python, for where `_kernels.c`, which does the same, could not be built.

Words are little-endian signed 64-bit integers. Counters are tuples of equal length, or rows: unsigned 64-bit
integers in the order of the machine, one core's behind the other's. The reading of a core holds such a row.
"""

from __future__ import annotations

import os
import struct
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate, groupby
from math import isfinite
from operator import is_
from typing import Any, NamedTuple

from neuron_monitor.api.guard import BlockedError, Guard
from neuron_monitor.api.layout import WORD_BYTES

__all__ = (
    "added",
    "core_rates",
    "descriptor_counts",
    "device_numbers",
    "filled",
    "followed",
    "form",
    "have_same_cores",
    "is_reading",
    "leading_on",
    "moved_clocks",
    "moved_rows",
    "parse_count",
    "processor_ticks",
    "put",
    "reached_at",
    "read_page",
    "reader",
    "refill",
    "refill_rows",
    "refresh",
    "refresh_within",
    "removed",
    "status_numbers",
    "table",
    "told",
    "utilizations",
    "window_numbers",
    "with_cores",
    "words",
    "worked",
)
READ_BYTES = 64
PROCESS_STAT_BYTES = 1 << 10
# A number of fewer digits fits into a signed word.
_MOST_DIGITS = 19
_LARGEST = (1 << 63) - 1
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


class Form(NamedTuple):
    """Pieces of a text, between which values stand."""

    pieces: bytes
    ends: list[int]


def form(pieces: bytes, lengths: bytes) -> Form:
    """Text that is filled with values again and again.

    Args:
        pieces: One behind the other.
        lengths: Of each, as 32-bit little-endian integers: one more than there are values.

    Raises:
        ValueError: There are no pieces, or they are of other lengths.
    """
    ends = list(accumulate(struct.unpack(f"<{len(lengths) // 4}i", lengths)))
    if not ends or ends[-1] != len(pieces):
        raise ValueError("pieces of other lengths")
    return Form(pieces, ends)


def filled(form: Form, numbers: list[float | int | None], texts: Mapping[int, bytes]) -> bytes:
    """The whole text with its values.

    Args:
        numbers: The values; those that are no JSON numbers become null, integers beyond 64 bits the largest.
        texts: What stands for a value instead, by its position, in rising order.

    Raises:
        ValueError: There is not a value for each place.
    """
    pieces, ends = form
    if len(numbers) != len(ends) - 1:
        raise ValueError("not a value for each place")
    values = [_number_text(number) for number in numbers]
    for position, text in texts.items():
        values[position] = text
    parts = [b""] * (2 * len(values) + 1)
    parts[::2] = [pieces[begin:end] for begin, end in zip((0, *ends), ends)]
    parts[1::2] = values
    return b"".join(parts)


def _number_text(number: float | int | None) -> bytes:
    if number is None or (isinstance(number, float) and not isfinite(number)):
        return b"null"
    if isinstance(number, int) and not -_LARGEST <= number < 1 << 64:
        number = _LARGEST if number > 0 else -_LARGEST
    return repr(number).encode()


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


def followed(readings: tuple[Any, ...], rows: bytes) -> tuple[Any, ...]:
    """Readings of cores with the counters that stand in rows; the same objects where these are the same.

    Raises:
        ValueError: There are not so many rows.
    """
    found, at = [], 0
    for reading in readings:
        row = rows[at : at + len(reading.words)]
        if len(row) < len(reading.words):
            raise ValueError("there are not so many words")
        found.append(reading if row == reading.words else reading._replace(words=row))
        at += len(row)
    return readings if all(map(is_, found, readings)) else tuple(found)


def with_cores(processes: tuple[Any, ...], cores: Mapping[int, Any]) -> tuple[Any, ...]:
    """Processes with the readings of their cores as they are now; the same objects where these are the same.

    Args:
        cores: All of them by id.

    Raises:
        KeyError: A core is not there.
    """
    return tuple([_with_cores(process, cores) for process in processes])


def _with_cores(process: Any, cores: Mapping[int, Any]) -> Any:
    now = {core_id: cores[core_id] for core_id in process.cores}
    is_still = all(map(is_, now.values(), process.cores.values()))
    return process if is_still else process._replace(cores=now)


def refill(
    numbers: list[Any],
    places: Sequence[tuple[int, ...]],
    before: tuple[Any, ...],
    after: tuple[Any, ...],
    wall_ns: float,
    columns: tuple[int, ...],
    copies: int,
    outcomes: Sequence[tuple[int, ...]],
    memory: tuple[int, int],
    shares: tuple[float, ...],
) -> list[int] | None:
    """Put what processes did between two looks into the numbers of a report.

    Args:
        numbers: Of the report, made before of processes of the same form.
        places: Of each process, where its counters begin and how many there are, where its executions begin,
            the size of its logical cores, where its activity begins and how many numbers that has, and where
            its percentiles of latency begin, as the runtime sees it and on the device; each begin is below 0
            if it is not wanted, or was not told.
        before: Readings of the processes.
        after: The same later.
        wall_ns: The time between, for processes that do not tell their own.
        columns: As `window_numbers` has them, and `copies` too.
        outcomes: Of each number of executions, the columns of the statuses that are part of it.
        memory: First column and end of the memory that cores hold.
        shares: Of the percentiles.

    Returns:
        Which processes hold other memory or models than before; None if one is of another form than it was,
        or told nothing since: some numbers may be others then.
    """
    if not len(before) == len(after) == len(places):
        return None
    found = []
    for index, (place, old, new) in enumerate(zip(places, before, after)):
        elapsed_ns = _passed(old, new, wall_ns) if _are_alike(old, new) else -1
        if elapsed_ns < 0:
            return None
        counters_at, counter_count, executions_at, size, activity_at, activity_count, *latency_at = place
        told = window_numbers(old.cores, new.cores, elapsed_ns, columns, size, copies)
        groups = ((counters_at, counter_count, told[0]), (activity_at, activity_count, told[1]))
        for begin, count, group in groups:
            if begin >= 0:
                if len(group) != count:
                    return None
                numbers[begin : begin + count] = group
        if executions_at >= 0:
            ended = [_ended(old.cores, new.cores, each, told[2], columns) for each in outcomes]
            numbers[executions_at : executions_at + len(ended)] = ended
            if new.elapsed_ns is not None:
                for kind, begin in zip(("total", "device"), latency_at):
                    if not _put_latency(numbers, begin, old.latency.get(kind), new.latency.get(kind), shares):
                        return None
        is_held = old.host_memory is new.host_memory and old.models_told is new.models_told
        if not is_held or _memory(old, memory) != _memory(new, memory):
            found.append(index)
    return found


def refill_rows(
    numbers: list[Any],
    places: Sequence[tuple[int, ...]],
    cores: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
    before: bytes,
    after: bytes,
    width: int,
    elapsed_ns: float,
    counters: tuple[tuple[int, ...], int],
    outcomes: Sequence[tuple[int, ...]],
    memory: tuple[int, int],
) -> list[int]:
    """Put what processes did between two looks at the same cores into the numbers of a report.

    The cores have no clock of their own: for others there is `refill`.

    Args:
        numbers: Of the report, made before of the same processes.
        places: As `refill` has them.
        cores: Of each process the ids of its cores, by rising id, and their rows.
        before: Rows of counters.
        after: The same later.
        width: Counters of a row.
        elapsed_ns: The time between.
        counters: Columns as `window_numbers` has them, and `copies`.
        outcomes: As `refill` has them.
        memory: The same.

    Returns:
        Which processes hold other memory than before.

    Raises:
        ValueError: The rows, columns or numbers are not those of before.
    """
    old, new = _rows(before, after, width), _rows(after, before, width)
    if len(cores) != len(places) or not 0 <= memory[0] <= memory[1] <= width:
        raise ValueError("no such columns or cores")
    found = []
    for index, (place, (ids, rows)) in enumerate(zip(places, cores)):
        if len(ids) != len(rows) or any(not 0 <= row < len(new) for row in rows):
            raise ValueError("no such rows")
        first = {core_id: _Row(old[row]) for core_id, row in zip(ids, rows)}
        last = {core_id: _Row(new[row]) for core_id, row in zip(ids, rows)}
        told = window_numbers(first, last, elapsed_ns, counters[0], place[3], counters[1])
        if place[0] >= 0:
            if len(told[0]) != place[1]:
                raise ValueError("not as many numbers as there were")
            numbers[place[0] : place[0] + place[1]] = told[0]
        if place[2] >= 0:
            ended = [_ended(first, last, each, told[2], counters[0]) for each in outcomes]
            numbers[place[2] : place[2] + len(ended)] = ended
        if any(old[row][slice(*memory)] != new[row][slice(*memory)] for row in rows):
            found.append(index)
    return found


def put(numbers: list[Any], positions: bytes, value: float) -> None:
    """Put a number into several places of a list, which are 32-bit integers.

    Raises:
        IndexError: There is no such place.
    """
    for position in memoryview(positions).cast("i"):
        numbers[position] = value


class _Row(NamedTuple):
    """A row as if it were a core's reading."""

    counts: Counts
    is_clocked: bool = False


def _rows(rows: bytes, others: bytes, width: int) -> list[Counts]:
    if width <= 0 or len(rows) != len(others) or len(rows) % (width * WORD_BYTES):
        raise ValueError("not the same rows")
    return list(struct.iter_unpack(f"={width}Q", rows))


def status_numbers(
    before: bytes,
    after: bytes,
    width: int,
    sizes: tuple[int, ...],
    wall_ns: float,
    columns: tuple[int, int, int],
    idle: list[int],
) -> list[float]:
    """What devices hold and do, one behind the other, as `device_numbers` has each.

    Args:
        before: Rows of the counters of all cores, which have no clock of their own.
        after: The same later.
        width: Counters of a row.
        sizes: Cores of each device.
        wall_ns: The time between.
        columns: Of the busy time in µs; the first of the memory that a core holds, and the end of that.
        idle: Whole seconds for which each core did nothing.

    Raises:
        ValueError: The rows or columns are not those of before.
    """
    old, new = _rows(before, after, width), _rows(after, before, width)
    busy, start, stop = columns
    if not (0 <= busy < width and 0 <= start < width and 0 <= stop <= width):
        raise ValueError("no such columns")
    if min(sizes, default=0) < 0 or sum(sizes) > len(new):
        raise ValueError("no such rows")
    numbers: list[float] = []
    first = 0
    for size in sizes:
        rows = range(first, first + size)
        numbers.append(sum(sum(new[row][start:stop]) for row in rows))
        for row in rows:
            worked = 1000 * (new[row][busy] - old[row][busy])
            numbers += (100 * _share(worked, wall_ns) if wall_ns > 0 else 0.0, idle[row])
        first += size
    return numbers


def moved_rows(before: bytes, after: bytes, width: int, columns: tuple[int, ...]) -> list[int]:
    """The rows of which one of these columns is another now.

    Raises:
        ValueError: The rows or columns are not those of before.
    """
    old, new = _rows(before, after, width), _rows(after, before, width)
    if any(not 0 <= column < width for column in columns):
        raise ValueError("no such columns")
    return [
        row
        for row, (was, now) in enumerate(zip(old, new))
        if any(was[column] != now[column] for column in columns)
    ]


def _passed(before: Any, after: Any, wall_ns: float) -> float:
    """The time between two looks; below 0 where a process's own went back, or it told nothing since."""
    if after.elapsed_ns is None:
        return wall_ns
    is_new = after.published_at_s != before.published_at_s
    return float(after.elapsed_ns - before.elapsed_ns) if is_new else -1.0


def _put_latency(numbers: list[Any], begin: int, old: Any, new: Any, shares: tuple[float, ...]) -> bool:
    """Put percentiles into the numbers; False where there are none, or some, unlike before."""
    if old is None or new is None or old.bounds is not new.bounds:
        return False
    reached = reached_at(old.words, new.words, shares)
    if (len(reached) > 0) != (begin >= 0):
        return False
    if reached:
        numbers[begin : begin + len(reached)] = [new.bounds.seconds[at] for at in reached]
    return True


def _are_alike(before: Any, after: Any) -> bool:
    """Whether two looks at a process differ only in what it counts, and what it holds."""
    counted = ("cores", "host_memory", "models_told", "elapsed_ns", "published_at_s", "latency")
    changing = [before._fields.index(name) for name in counted]
    is_clocked = after.elapsed_ns is not None
    return (
        all(old is new for field, (old, new) in enumerate(zip(before, after)) if field not in changing)
        and before.cores.keys() == after.cores.keys()
        and (before.elapsed_ns is not None) == is_clocked
        and all(core.is_clocked == is_clocked for core in after.cores.values())
    )


def _ended(
    before: Mapping[int, Any],
    after: Mapping[int, Any],
    parts: tuple[int, ...],
    completed: int,
    columns: tuple[int, ...],
) -> int:
    """Executions of some statuses, of which only that of success counts where all ended well."""
    if completed >= 0:
        return completed if columns[7] in parts else 0
    pairs = [(before[core_id].counts, core.counts) for core_id, core in after.items()]
    return sum(sum(added(old, new, part, part + 1)) for old, new in pairs for part in parts)


def _memory(process: Any, columns: tuple[int, int]) -> list[Counts]:
    return [core.counts[slice(*columns)] for core in process.cores.values()]


def utilizations(
    before: Mapping[int, Any],
    after: Mapping[int, Any],
    wall_ns: float,
    known: Mapping[int, float],
    busy: int,
    clock: int,
) -> dict[int, float]:
    """Share of the time in which each core executed something.

    Args:
        before: Readings of cores by id.
        after: The same later.
        known: The shares of the last time, which hold for cores whose clock stands still.
        busy: Column of the busy time in µs.
        clock: Column of the simulated time that passed, where there is such.
    """
    found = {}
    for core_id, core in after.items():
        new = core.counts
        old = before[core_id].counts if core_id in before else new
        passed_ns = new[clock] - old[clock] if core.is_clocked else wall_ns
        is_still = core.is_clocked and not passed_ns
        share = _share(1000 * (new[busy] - old[busy]), passed_ns) if passed_ns > 0 else 0.0
        found[core_id] = known.get(core_id, 0.0) if is_still else share
    return found


def worked(before: Mapping[int, Any], after: Mapping[int, Any], columns: tuple[int, ...]) -> list[int]:
    """Ids of the cores of which one of these columns is another now, or which were not there."""
    return [
        core_id
        for core_id, core in after.items()
        if core_id not in before
        or any(core.counts[column] != before[core_id].counts[column] for column in columns)
    ]


def device_numbers(
    cores: tuple[Any, ...], shares: Mapping[int, float], allocation: Mapping[int, Any], start: int, stop: int
) -> list[float]:
    """What a device's cores hold and do.

    Args:
        shares: Share of the time in which each core worked, by its id.
        allocation: Of each core that is used, since when it is idle.
        start: First column of the memory that a core holds.
        stop: Its end.

    Returns:
        Bytes of all of them, then busy percent and whole idle seconds of each.
    """
    numbers: list[float] = [sum([sum(core.counts[start:stop]) for core in cores])]
    for core in cores:
        known = allocation.get(core.id)
        numbers += (100 * shares.get(core.id, 0.0), int(known.idle_s) if known else 0)
    return numbers


def have_same_cores(processes: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    """Whether processes are those that they were, and use the cores that they used."""
    return len(processes) == len(others) and all(
        one is other or (one.pid == other.pid and one.cores.keys() == other.cores.keys())
        for one, other in zip(processes, others)
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


def told(known: list[tuple[Any, ...] | None], layout: tuple[Any, ...]) -> list[tuple[Any, ...] | None]:
    """What processes' open pages tell by now.

    Args:
        known: Of each page its descriptor, bytes, sequence, revision, upper bounds of latencies as they stand
            in it, and the process's reading; None for what the caller must look at.
        layout: Where a row's place and counters stand, the counters' limits, the words of a row, and the most
            bytes that a memory has.

    Returns:
        The same object where a page was not published anew; else the same with the new sequence and reading,
        or None where the caller must look at it: always here, and of the compiled kernel where more is new
        than counters.
    """
    return [each if each is not None and _is_as_before(each) else None for each in known]


def _is_as_before(known: tuple[Any, ...]) -> bool:
    try:
        data = read_page(known[0], 3 * WORD_BYTES)
    except OSError:
        return False
    return data is not None and words(data, 1, 1)[0] == known[2]


def processor_ticks(descriptors: list[int]) -> list[tuple[int, int] | None]:
    """Clock ticks in user mode and in the kernel of processes whose `/proc/PID/stat` is open.

    Returns:
        None where the file cannot be read, because the process has ended or the descriptor is below 0.
    """
    return list(map(_ticks, descriptors))


def moved_clocks(pids: list[int], clocks: bytearray) -> list[int]:
    """Which processes have worked since; asking costs a tenth of reading `/proc/PID/stat`.

    Args:
        pids: In this process's own namespace.
        clocks: Processor time of each in ns when it was looked at last (64-bit integers in the order of the
            machine, below 0 where it could not be told). Is written anew.

    Returns:
        Positions of those whose time is another now, or cannot be told.

    Raises:
        ValueError: There is not a clock for each process.
    """
    if len(clocks) != len(pids) * WORD_BYTES:
        raise ValueError("not a clock for each process")
    known = memoryview(clocks).cast("q")
    now = list(map(_processor_ns, pids))
    moved = [position for position, ns in enumerate(now) if ns < 0 or ns != known[position]]
    known[:] = memoryview(struct.pack(f"={len(now)}q", *now)).cast("q")
    return moved


def _processor_ns(pid: int) -> int:
    """Processor time of a process; below 0 where it cannot be told (man 3 clock_getcpuclockid)."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return -1


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
    tables: list[tuple[bytearray, bytearray, bytes, bytes]],
) -> list[tuple[list[int], list[tuple[int, bytes | None]]]]:
    """Read open nodes from their start, and keep their new values.

    Args:
        tables: Of each table its descriptors (32-bit integers, below 0 where a file is not open), the numbers
            that stood there the last time, the largest that each can have (rows), and the positions to read
            (32-bit integers).

    Returns:
        Of each table the positions whose number changed; and (position, first 64 bytes) of those where
        something else stands than a plain number within its limit, None where reading failed: these keep what
        they had.

    Raises:
        IndexError: There is no such position.
        ValueError: The parts of a table are not of the same length.
    """
    return [_refreshed(*table) for table in tables]


def _refreshed(
    told: bytearray, values: bytearray, limits: bytes, wanted: bytes
) -> tuple[list[int], list[tuple[int, bytes | None]]]:
    descriptors, positions = memoryview(told).cast("i"), memoryview(wanted).cast("i")
    if min(len(values), len(limits)) < WORD_BYTES * len(descriptors):
        raise ValueError("tables of other lengths")
    if any(not 0 <= position < len(descriptors) for position in positions):
        raise IndexError("no such node")
    known, most = memoryview(values).cast("Q"), memoryview(limits).cast("Q")
    changed: list[int] = []
    others: list[tuple[int, bytes | None]] = []
    for position in positions:
        try:
            text = os.pread(descriptors[position], READ_BYTES, 0)
        except OSError:
            others.append((position, None))
            continue
        line = text.partition(b"\n")[0]
        if not (0 < len(line) < _MOST_DIGITS and line.isdigit()) or int(line) > most[position]:
            others.append((position, text))
            continue
        if int(line) != known[position]:
            known[position] = int(line)
            changed.append(position)
    return changed, others


def reader() -> Guard[int, Any]:
    """What `refresh_within` reads with: a thread of its own, which can be given up."""
    return Guard(0.0, time.monotonic_ns)


def refresh_within(
    reader: Guard[int, Any],
    tables: list[tuple[bytearray, bytearray, bytes, bytes]],
    timeout_s: float,
    only_others: bool,
) -> list[tuple[list[int], list[tuple[int, bytes | None]]]] | None:
    """The same as `refresh`; None where the driver did not answer in time, or still hangs since before.

    Args:
        only_others: Whether nobody asks which numbers changed: none of them is told then.

    Raises:
        OSError: What reading raised.
    """
    reader.timeout_s = timeout_s
    outcome = reader.run({0: partial(refresh, tables)})[0]
    if isinstance(outcome, BlockedError):
        return None
    if isinstance(outcome, Exception):
        raise outcome
    found: list[tuple[list[int], list[tuple[int, bytes | None]]]] = outcome
    return [([], others) for _, others in found] if only_others else found


def is_reading(reader: Guard[int, Any]) -> bool:
    """Whether something that was given up still hangs."""
    return reader.is_blocked


def leading_on(each: list[dict[str, str]]) -> list[int]:
    """Positions of those whose symbolic links, by name, all lead where they did."""
    return [position for position, links in enumerate(each) if all(map(_leads_to, links, links.values()))]


def _leads_to(link: str, target: str) -> bool:
    try:
        return os.readlink(link) == target
    except OSError:
        return False


def descriptor_counts(processes: str, pids: Sequence[int]) -> list[int]:
    """How many files each process has open, as Linux tells since 6.2; before, 0 for all.

    Args:
        processes: Where the proc file system is mounted.

    Returns:
        -1 where a process is not there, or is another user's.
    """
    return [_size(f"{processes}/{pid}/fd") for pid in pids]


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def removed(descriptors: list[int]) -> list[int]:
    """Positions of the open files that no folder has any more; a descriptor below 0 is not open."""
    return [
        position
        for position, descriptor in enumerate(descriptors)
        if descriptor >= 0 and os.fstat(descriptor).st_nlink == 0
    ]


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
