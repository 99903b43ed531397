"""Charges the device time of kernels to the lines inside them, file by file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from neuron_profile.analysis.source_frames import SourceFrame, SourceLine, load_frames, stack
from neuron_profile.analysis.time.stack_charges import charge_stacks
from neuron_tools.profile.reader import Profile


def charge_kernel_lines(profile: Profile) -> dict[SourceLine, float]:
    """Device time in ns by line inside kernels: a part of what the lines that call them are charged.

    A moment stands once in each file on the kernel's stack, at the innermost line there. Moments in which no
    instruction or transfer of a kernel is exposed stay at its call alone.
    """
    frames = load_frames(profile)
    charged: dict[SourceLine, float] = defaultdict(float)
    for pair, device_ns in charge_stacks(profile).items():
        if pair.own != pair.operation:
            inside = _inside(stack(frames, pair.own), stack(frames, pair.operation))
            for place in _innermost_by_file(inside):
                charged[place] += device_ns
    return dict(charged)


def _inside(own: list[SourceFrame], calling: list[SourceFrame]) -> list[SourceFrame]:
    """The frames of a kernel's stack that are not those of its call, innermost first."""
    outside = set(calling)
    return [frame for frame in own if frame not in outside]


def _innermost_by_file(frames: list[SourceFrame]) -> Iterator[SourceLine]:
    places = {frame.file: frame.line for frame in reversed(frames)}
    return (SourceLine(file, line) for file, line in places.items())
