"""Markers that were saved under a name: times of a profile with notes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen

MOST_MARKERS, LONGEST_NOTE, LONGEST_NAME = 500, 80, 80
_FARTHEST_NS = float(1 << 62)


class MarkerError(NeuronToolsError):
    """What is to be saved are no markers."""


@frozen
class Marker:
    """A time on a profile's timeline.

    Attributes:
        time_ns: From the profile's start.
        text: The note; empty without one.
    """

    time_ns: float
    text: str

    @property
    def plain(self) -> dict[str, Any]:
        """As the timeline has it."""
        return {"timeNs": self.time_ns, "text": self.text}


@frozen
class MarkerSet:
    """The markers that were saved under a name.

    Attributes:
        profile_id: Whose they are.
        profile_name: What that was called when they were saved.
        name: Of the set.
        markers: In order of time.
    """

    profile_id: str
    profile_name: str
    name: str
    markers: tuple[Marker, ...]


def parsed_markers(told: Any) -> tuple[Marker, ...]:
    """Markers as the timeline tells them, in order of time.

    Args:
        told: A list of objects with `timeNs` and `text`.

    Raises:
        MarkerError: It is anything else, or there are too many.
    """
    if not isinstance(told, list) or len(told) > MOST_MARKERS:
        raise MarkerError(f"Save a list of at most {MOST_MARKERS} markers.")
    found = [_marker(one) for one in told]
    if None in found:
        raise MarkerError("A marker has a time in nanoseconds and a note.")
    return tuple(sorted((one for one in found if one is not None), key=lambda marker: marker.time_ns))


def stored_sets(stored: Any) -> tuple[MarkerSet, ...]:
    """The sets in what was stored, by profile and name; what makes no sense is left out."""
    return tuple(
        MarkerSet(str(profile_id), str(kept.get("profile", "")), str(name), tuple(_sound(markers)))
        for profile_id, kept in (stored.items() if isinstance(stored, dict) else ())
        if isinstance(kept, dict) and isinstance(kept.get("sets"), dict)
        for name, markers in kept["sets"].items()
    )


def _sound(told: Any) -> Sequence[Marker]:
    found = [_marker(one) for one in (told if isinstance(told, list) else [])]
    return [one for one in found if one is not None]


def _marker(told: Any) -> Marker | None:
    time_ns, text = (told.get("timeNs"), told.get("text")) if isinstance(told, dict) else (None, None)
    if not isinstance(time_ns, (int, float)) or isinstance(time_ns, bool) or not isinstance(text, str):
        return None
    is_near = math.isfinite(time_ns) and abs(time_ns) <= _FARTHEST_NS
    return Marker(time_ns, text[:LONGEST_NOTE]) if is_near else None
