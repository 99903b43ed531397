"""The host's virtual clock: wall time less what is not the user's."""

from __future__ import annotations

import threading
import time


class Pause:
    """A block in which a clock stands still; one object serves all blocks, as they nest."""

    __slots__ = ("_clock",)

    def __init__(self, clock: HostClock) -> None:
        self._clock = clock

    def __enter__(self) -> int:
        return self._clock.pause()

    def __exit__(self, *error: object) -> None:
        self._clock.resume()


class HostClock:
    """Nanoseconds from its start; stands still while paused. Safe to use from several threads.

    Args:
        fixed_ns_per_dispatch: Makes the clock a fixed one: each dispatch takes this long and nothing
            else takes any time, so that two runs are identical. None: wall time.
    """

    def __init__(self, fixed_ns_per_dispatch: int | None = None) -> None:
        self._fixed_ns = fixed_ns_per_dispatch
        self._lock = threading.Lock()
        self._pauses = 0
        self._paused_at_ns = 0
        self._offset_ns = -self._wall_ns()
        self._pause = Pause(self)

    def now_ns(self) -> int:
        """The virtual time."""
        with self._lock:
            return self._now()

    def pause(self) -> int:
        """Stop until `resume`; pauses nest. Returns the time it stopped at."""
        with self._lock:
            if self._pauses == 0:
                self._paused_at_ns = self._wall_ns()
            self._pauses += 1
            return self._now()

    def resume(self) -> None:
        """End one `pause`."""
        with self._lock:
            if self._pauses:
                self._pauses -= 1
                if self._pauses == 0:
                    self._offset_ns -= self._wall_ns() - self._paused_at_ns

    def paused(self) -> Pause:
        """`pause` and `resume` around a block; gives the time it stopped at."""
        return self._pause

    def dispatch(self) -> int:
        """Spend what a dispatch costs under the fixed clock; returns the time after it."""
        with self._lock:
            self._offset_ns += self._fixed_ns or 0
            return self._now()

    def wait_until(self, time_ns: int) -> None:
        """Move to `time_ns` unless that is past."""
        with self._lock:
            self._offset_ns += max(0, time_ns - self._now())

    def _now(self) -> int:
        return (self._paused_at_ns if self._pauses else self._wall_ns()) + self._offset_ns

    def _wall_ns(self) -> int:
        return time.perf_counter_ns() if self._fixed_ns is None else 0
