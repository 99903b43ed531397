"""What an index's header says of its tracks, checked before anything is drawn from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from neuron_tools.profile.timeline.blob import Blob
from neuron_tools.profile.timeline.track import Track

SAMPLES_PER_BLOCK = 64
MOST = 1 << 61
"""Of a number: sums and differences of two still are numbers of 64 bits."""
LARGEST = (1 << 63) - 1
"""Of a time, and of what lies between two: what a number of 64 bits holds."""
SAMPLES = ("time", "value")
BLOCKS = ("least", "greatest", "total")


def track_of(stored: Mapping[str, Any]) -> Track:
    """A track as the header has it.

    Raises:
        ValueError: Something of it is of another kind or size.
        KeyError: Something is missing.
    """
    values = {field.name: stored[field.name] for field in fields(Track) if field.name != "replica_of"}
    track = Track(**{**values, "headings": tuple(values["headings"])})
    texts = (track.id, track.level, track.name, track.table, track.unit, *track.headings)
    numbers = (track.process_idx, track.spans, track.depths)
    known = (number for number in (track.rank, track.core_idx) if number is not None)
    are_texts = all(isinstance(text, str) for text in texts)
    are_numbers = all(map(_is_number, (*numbers, *known)))
    if not (are_texts and are_numbers and _is_span(track.start_ns, track.end_ns)):
        raise ValueError("its tracks do not fit together")
    return track


def check_samples(stored: Mapping[str, Any], blob: Blob) -> None:
    """Check that a counter's samples, if the track has any, lie in the file and are as many as it says.

    Raises:
        ValueError: They do not.
        KeyError: Something is missing.
    """
    samples = stored.get("samples")
    if samples is None:
        return
    count = samples["samples"]
    blocks = -(-count // SAMPLES_PER_BLOCK) if _is_number(count) else -1
    wanted = {**dict.fromkeys(SAMPLES, count), **dict.fromkeys(BLOCKS, blocks)}
    if blocks < 1 or not _is_span(samples["start_ns"], samples["start_ns"]):
        raise ValueError("its counters do not fit together")
    for name, length in wanted.items():
        kinds = "iu" if name == "time" else "f"
        if samples[name][2] != length or not blob.holds(samples[name], kinds):
            raise ValueError("its counters do not fit together")


def _is_span(start_ns: object, end_ns: object) -> bool:
    if not (type(start_ns) is int and type(end_ns) is int):
        return False
    return -LARGEST <= start_ns <= end_ns <= LARGEST and end_ns - start_ns <= LARGEST


def _is_number(value: object) -> bool:
    return type(value) is int and -MOST <= value <= MOST
