"""How fast a training loop goes."""

from __future__ import annotations

from neuron_tools.device import native


class RateTracker:
    """Counts samples and tells how many there are in a second, of simulated time in a capture.

    Args:
        smooth_factor: Share that the rate told before keeps in the next one.
    """

    def __init__(self, smooth_factor: float = 0.4) -> None:
        self._smooth_factor = smooth_factor
        self._started_ns = self._told_ns = _now_ns()
        self._told_count = self._count = 0.0
        self._rate: float | None = None

    def add(self, count: float) -> None:
        """Count samples."""
        self._count += count

    def rate(self) -> float:
        """Samples per second since the rate was told before, smoothed."""
        now_ns = _now_ns()
        rate = _per_second(self._count - self._told_count, now_ns - self._told_ns)
        if self._rate is not None:
            rate = (1 - self._smooth_factor) * rate + self._smooth_factor * self._rate
        self._told_ns, self._told_count, self._rate = now_ns, self._count, rate
        return rate

    def global_rate(self) -> float:
        """Samples per second since the tracker was made."""
        return _per_second(self._count, _now_ns() - self._started_ns)


def _now_ns() -> int:
    return native.host_now_ns() if native.is_timing() else native.wall_now_ns()


def _per_second(count: float, elapsed_ns: int) -> float:
    return count / elapsed_ns * 1e9 if elapsed_ns > 0 else 0.0
