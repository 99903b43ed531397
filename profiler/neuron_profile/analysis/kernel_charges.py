"""Charges the device time of kernels to the lines inside them, file by file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from neuron_profile.analysis.source_frames import SourceFrame, SourceLine, load_frames, stack
from neuron_profile.analysis.time.stack_charges import charge_stacks
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_OF_KERNELS = "SELECT 1 FROM Instruction WHERE nki_source_location <> '' LIMIT 1"


@frozen
class KernelLine:
    """A line inside kernels, and the part it has of the device time of the lines that call them.

    Attributes:
        function: In which it stands.
        device_ns: In ns; once in each file on the kernel's stack, at the innermost line there.
    """

    place: SourceLine
    function: str
    device_ns: float


def find_kernel_lines(profile: Profile) -> tuple[KernelLine, ...]:
    """The lines inside kernels of a profile, or of a range of it, by falling time; none without kernels.

    Moments in which no instruction or transfer of a kernel is exposed stay at its call alone.
    """
    if not profile.whole.kept("has kernels", lambda: profile.whole.query(_OF_KERNELS).num_rows > 0):
        return ()
    charged, functions = _charged(profile)
    rows = (KernelLine(place, functions[place], device_ns) for place, device_ns in charged.items())
    return tuple(sorted(rows, key=lambda row: (-row.device_ns, row.place)))


def _charged(profile: Profile) -> tuple[dict[SourceLine, float], dict[SourceLine, str]]:
    """Device time by line, and the function of each."""
    frames = load_frames(profile)
    charged: dict[SourceLine, float] = defaultdict(float)
    functions: dict[SourceLine, str] = {}
    for pair, device_ns in charge_stacks(profile).items():
        if pair.own != pair.operation:
            inside = _inside(stack(frames, pair.own), stack(frames, pair.operation))
            for frame in _innermost_by_file(inside):
                place = SourceLine(frame.file, frame.line)
                functions[place] = frame.function
                charged[place] += device_ns
    return charged, functions


def _inside(own: list[SourceFrame], calling: list[SourceFrame]) -> list[SourceFrame]:
    """The frames of a kernel's stack that are not those of its call, innermost first."""
    outside = set(calling)
    return [frame for frame in own if frame not in outside]


def _innermost_by_file(frames: list[SourceFrame]) -> Iterator[SourceFrame]:
    return iter({frame.file: frame for frame in reversed(frames)}.values())
