"""Reads the parameters of the timeline's data routes; whatever makes no sense is refused in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2

from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen

BUCKETS = 1024
"""Buckets of one tile; the engine has the same number."""
FINEST_LEVEL, COARSEST_LEVEL = 0, 52
MOST_TILES = 16
MOST_TRACKS = 4096
LONGEST_TEXT = 2000
FARTHEST_NS = 1 << 62


class ParameterError(NeuronToolsError):
    """A request asks for something that does not exist."""


@frozen
class TileRange:
    """`count` tiles of one level, which have `BUCKETS` buckets of 2**level ns each, from tile `first`."""

    level: int
    first: int
    count: int

    @classmethod
    def around(cls, begin_ns: int, end_ns: int, pixels: int) -> TileRange:
        """The tiles that a timeline so many pixels wide asks for: the rule of `tile.ts`."""
        ns_per_pixel = (end_ns - begin_ns) / pixels
        level = round(log2(ns_per_pixel)) if ns_per_pixel > 1 else FINEST_LEVEL
        first, last = begin_ns // BUCKETS >> level, -(-end_ns // (BUCKETS << level))
        return cls(level, first, max(1, last - first))

    @property
    def bucket_ns(self) -> int:
        """Length of a bucket."""
        return 1 << self.level

    @property
    def start_ns(self) -> int:
        """Start of the first tile."""
        return self.first * BUCKETS << self.level

    @property
    def end_ns(self) -> int:
        """End of the last tile."""
        return (self.first + self.count) * BUCKETS << self.level


@frozen
class Parameters:
    """The parameters of one request."""

    given: Mapping[str, str]

    def text(self, name: str, default: str = "") -> str:
        """A text.

        Raises:
            ParameterError: It is longer than anything that the engine asks.
        """
        value = self.given.get(name, default)
        if len(value) > LONGEST_TEXT:
            raise ParameterError(f"The parameter {name} is too long: shorten it.")
        return value

    def integer(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """An integer between two bounds, which count as inside.

        Raises:
            ParameterError: It is absent without a default, no integer, or outside.
        """
        text = self.given.get(name)
        if text is None and default is not None:
            return default
        digits = (text or "").removeprefix("-")
        if text is None or not digits.isascii() or not digits.isdecimal() or len(digits) > 20:
            raise ParameterError(f"The parameter {name} must be an integer.")
        value = int(text)
        if not low <= value <= high:
            raise ParameterError(f"The parameter {name} must lie between {low} and {high}, not {value}.")
        return value

    def time_range(self, origin_ns: int, prefix: str = "") -> tuple[int, int]:
        """The range `start`, `end`, given in ns from the origin; their names may begin with a prefix.

        Raises:
            ParameterError: It is empty or makes no sense.
        """
        start = self.integer(f"{prefix}start", -FARTHEST_NS, FARTHEST_NS) + origin_ns
        end = self.integer(f"{prefix}end", -FARTHEST_NS, FARTHEST_NS) + origin_ns
        if end <= start:
            raise ParameterError("The range is empty: end it after its start.")
        return start, end

    def tile_range(self) -> TileRange:
        """`level`, `tile` and `tiles`.

        Raises:
            ParameterError: One of them makes no sense.
        """
        level = self.integer("level", FINEST_LEVEL, COARSEST_LEVEL)
        farthest = FARTHEST_NS // BUCKETS >> level
        first = self.integer("tile", -farthest, farthest)
        return TileRange(level, first, self.integer("tiles", 1, MOST_TILES, 1))

    def places(self, name: str, tracks: int) -> list[int]:
        """Numbers of tracks, written as `1,4-7`; ascending, each once.

        Raises:
            ParameterError: It names tracks that the profile does not have.
        """
        found: set[int] = set()
        for part in self.given.get(name, "").split(","):
            first, dash, last = part.partition("-")
            if not all(
                text.isascii() and text.isdecimal() and len(text) < 10 for text in (first, last or first)
            ):
                raise ParameterError(f"The parameter {name} must list tracks like 1,4-7.")
            if dash and not last:
                raise ParameterError(f"The parameter {name} lacks the end of a range.")
            low, high = int(first), int(last or first)
            if high >= tracks:
                raise ParameterError(f"The profile has {tracks} tracks: there is none of number {high}.")
            found.update(range(low, high + 1))
        return sorted(found)[:MOST_TRACKS]
