"""Times of modification as marks of what was read."""

from __future__ import annotations

import time

# File systems take the time from a clock that ticks at 100 Hz at the slowest.
_TICK_NS = 20_000_000


def lasting_mark(modified_ns: int) -> int:
    """A time of modification to compare with later ones; -1 while a further change could still bear it.

    To be called before the reading: what changes during a long one could bear a time that is old at its end.

    Args:
        modified_ns: `st_mtime_ns` from before the reading.
    """
    return modified_ns if time.time_ns() - modified_ns > _TICK_NS else -1
