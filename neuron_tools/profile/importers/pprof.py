"""pprof: the gzipped protobuf of Go, gperftools and many samplers, with how often each stack was seen.

It has sums, no moments: stacks stand side by side, those that begin alike next to each other, each as long as
the time it was seen for. Of profiles of memory the bytes of each function are counters with one sample. Field
numbers are those of profile.proto.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from neuron_tools.profile.importers.call_stacks import Frame, calls_of_samples, stage_calls
from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.json_decode import LARGEST_TIME
from neuron_tools.profile.importers.lanes import NO_NUMBER, Lanes
from neuron_tools.profile.importers.recording import Clock, Recording
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "pprof"
UNIT_BYTES = {"bytes": 1, "kilobytes": 1 << 10, "megabytes": 1 << 20}
MOST_FUNCTIONS = 200
TOGETHER, OTHERS, NO_FUNCTION = "all functions", "all other functions", "no function"
UNIT_NS = {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9}
LARGEST_BYTES = 64 << 20
SAMPLE_TYPE_TAG, PERIOD_TYPE_TAG = 1 << 3 | 2, 11 << 3 | 2
NOWHERE = -1
_NUMBER_TAGS = {field << 3 for field in (7, 8, 9, 10, 12, 14)}
"""Of the profile's own numbers, which some writers put first."""
_TEXT, _NUMBER, _COUNT = "string", "int64", "uint64"
_MESSAGES = {
    "ValueType": {"type": (1, _NUMBER, False), "unit": (2, _NUMBER, False)},
    "Line": {"function_id": (1, _COUNT, False), "line": (2, _NUMBER, False)},
    "Sample": {"location_id": (1, _COUNT, True), "value": (2, _NUMBER, True)},
    "Location": {"id": (1, _COUNT, False), "address": (3, _COUNT, False), "line": (4, "Line", True)},
    "Function": {"id": (1, _COUNT, False), "name": (2, _NUMBER, False), "filename": (4, _NUMBER, False)},
    "Profile": {
        "sample_type": (1, "ValueType", True),
        "sample": (2, "Sample", True),
        "location": (4, "Location", True),
        "function": (5, "Function", True),
        "string_table": (6, _TEXT, True),
        "time_nanos": (9, _NUMBER, False),
        "period_type": (11, "ValueType", False),
        "period": (12, _NUMBER, False),
    },
}
"""Of each message the fields that are read: number, kind, whether there may be many."""


def recognise(head: Head) -> bool:
    """Whether the first fields have a type of samples, a message of one or two small numbers."""
    place, content = 0, head.content
    while 0 <= place < len(content):
        if content[place] in (SAMPLE_TYPE_TAG, PERIOD_TYPE_TAG):
            start, stop = _text_place(content, place + 1)
            found = _small_numbers(content[start:stop])
            is_type = found is not None and found[:1] == [1] and set(found) <= {1, 2}
            if content[place] == SAMPLE_TYPE_TAG or not is_type:
                return is_type
            place = stop
        else:
            place = _after_number(content, place + 1) if content[place] in _NUMBER_TAGS else NOWHERE
    return False


def read(file: TraceFile, recording: Recording) -> None:
    """Stages the stacks as calls of one thread.

    Raises:
        TraceError: It is damaged, too large, or holds no times.
    """
    profile = _parsed(file)
    texts = list(profile.string_table)
    units = [_text(texts, one.unit) for one in profile.sample_type]
    durations = _durations(profile, texts, units)
    frames, stacks = _stacks(profile, texts)
    lanes = Lanes(recording, lambda device: f"device {device}")
    lanes.process(NO_NUMBER, file.path.stem)
    recording.clock = Clock(int(profile.time_nanos) if 0 < profile.time_nanos <= LARGEST_TIME else None)
    if durations is not None:
        _stage_times(recording, lanes, frames, stacks, durations)
    elif any(unit in UNIT_BYTES for unit in units):
        for place, unit in enumerate(units):
            if unit in UNIT_BYTES:
                kind = _text(texts, profile.sample_type[place].type) or unit
                values = [_value(sample, place) * UNIT_BYTES[unit] for sample in profile.sample]
                _stage_bytes(recording, lanes, kind, _bytes_by_function(frames, stacks, values))
    else:
        told = ", ".join(unit for unit in units if unit) or "nothing"
        raise TraceError(
            f"{file.path} holds neither times nor bytes but {told}: record a profile of the processor's time "
            "or of the heap."
        )


def _stage_times(
    recording: Recording,
    lanes: Lanes,
    frames: list[Frame],
    stacks: list[tuple[int, ...]],
    durations: list[int],
) -> None:
    order = sorted(range(len(stacks)), key=stacks.__getitem__)
    widths = [min(max(int(durations[place]), 0), LARGEST_TIME) for place in order]
    edges = np.array([min(edge, LARGEST_TIME) for edge in accumulate(widths, initial=0)], np.int64)
    calls = calls_of_samples([stacks[place] for place in order], edges)
    lane = lanes.thread(NO_NUMBER, 0, "all threads, in sums")
    stage_calls(lanes, lane, frames, calls.finish(int(edges[-1])))
    recording.warn("A pprof profile has sums, no moments: stacks stand side by side, not when they ran.")


def _bytes_by_function(
    frames: list[Frame], stacks: list[tuple[int, ...]], values: list[int]
) -> list[tuple[str, int]]:
    """The functions that hold most themselves, not what they called; then all others, and all together."""
    held: Counter[str] = Counter()
    for stack, value in zip(stacks, values):
        held[frames[stack[-1]].name if stack else NO_FUNCTION] += value
    told = [(name, value) for name, value in held.most_common(MOST_FUNCTIONS) if value]
    rest = held.total() - sum(value for _, value in told)
    return [*told, *([(OTHERS, rest)] if rest else []), (TOGETHER, held.total())]


def _stage_bytes(recording: Recording, lanes: Lanes, kind: str, held: list[tuple[str, int]]) -> None:
    counters = [lanes.counter(NO_NUMBER, kind, name, "bytes") for name, _ in held]
    recording.append_samples(counters, [0] * len(held), [float(value) for _, value in held])


def _small_numbers(message: bytes) -> list[int] | None:
    """Fields of a message that has nothing but base-128 numbers; None for any other."""
    fields, place = [], 0
    while place < len(message):
        if message[place] & 7 or message[place] >= 0x80:
            return None
        fields.append(message[place] >> 3)
        place = _after_number(message, place + 1)
    return fields if place == len(message) else None


def _after_number(content: bytes, place: int) -> int:
    """The place after a base-128 number."""
    while place < len(content) and content[place] >= 0x80:
        place += 1
    return place + 1


def _text_place(content: bytes, place: int) -> tuple[int, int]:
    """Where the bytes of a field with a length below 128 begin and end."""
    return place + 1, place + 1 + (content[place] if place < len(content) else 0)


def _parsed(file: TraceFile) -> Any:
    content = file.content(LARGEST_BYTES, "record less of it")
    profile = _profile_class()()
    try:
        profile.ParseFromString(content)
    except DecodeError as error:
        raise TraceError(f"{file.path} is no whole pprof profile: record or copy it again.") from error
    return profile


def _profile_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="pprof.proto", package="pprof", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind, is_many) in fields.items():
            added = message.field.add(name=field, number=number)
            added.label = added.LABEL_REPEATED if is_many else added.LABEL_OPTIONAL
            if kind in _MESSAGES:
                added.type, added.type_name = added.TYPE_MESSAGE, f".pprof.{kind}"
            else:
                added.type = getattr(added, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("pprof.Profile"))


def _durations(profile: Any, texts: list[str], units: list[str]) -> list[int] | None:
    """Nanoseconds of each sample: of the last value that is a time, else its count times the period.

    None of a profile of something else.
    """
    timed = [place for place, unit in enumerate(units) if unit in UNIT_NS]
    if timed:
        return [_value(sample, timed[-1]) * UNIT_NS[units[timed[-1]]] for sample in profile.sample]
    period_unit = _text(texts, profile.period_type.unit)
    if units and period_unit in UNIT_NS and units[0] == "count":
        return [_value(sample, 0) * profile.period * UNIT_NS[period_unit] for sample in profile.sample]
    return None


def _value(sample: Any, place: int) -> int:
    return int(sample.value[place]) if place < len(sample.value) else 0


def _stacks(profile: Any, texts: list[str]) -> tuple[list[Frame], list[tuple[int, ...]]]:
    """The frames, and of each sample their numbers, outermost first."""
    functions = {one.id: (_text(texts, one.name), _text(texts, one.filename)) for one in profile.function}
    numbers: dict[Frame, int] = {}
    of_location: dict[int, tuple[int, ...]] = {}
    for location in profile.location:
        # Of functions that were inlined, the innermost stands first.
        frames = [_frame(functions.get(line.function_id, ("", "")), line.line) for line in location.line]
        frames = frames or [Frame(f"{location.address:#x}")]
        own = tuple(numbers.setdefault(frame, len(numbers)) for frame in reversed(frames))
        of_location[location.id] = own
    stacks = [
        tuple(frame for place in reversed(sample.location_id) for frame in of_location.get(place, ()))
        for sample in profile.sample
    ]
    return list(numbers), stacks


def _frame(function: tuple[str, str], line: int) -> Frame:
    name, file = function
    return Frame(name or "unknown", file or None, line if 0 < line < 1 << 31 else None)


def _text(texts: list[str], place: int) -> str:
    return texts[place] if 0 <= place < len(texts) else ""
