"""One clock for all processes of a capture."""

from __future__ import annotations


class CaptureClock:
    """Puts each process's own times, which count from its start, on one clock.

    The capture's clock begins with the first thing that any process recorded, so that a profile does not
    open with the seconds that importing took. Under the fixed clock processes are not related to each
    other: each begins at 0.

    Args:
        shared: Whether start times of processes mean anything (the measured clock).
        from_first: Where they mean nothing, each process begins with its first record.
    """

    def __init__(self, *, shared: bool, from_first: bool = False) -> None:
        self._shared = shared
        self._from_first = from_first
        self._origin_unix_ns: int | None = None

    @property
    def has_begun(self) -> bool:
        """Whether it is known when the capture begins, or need not be."""
        return not self._shared or self._origin_unix_ns is not None

    def begin(self, unix_ns: int) -> None:
        """Let the capture begin at a time."""
        self._origin_unix_ns = unix_ns

    def offset_ns(self, start_unix_ns: int, first_ns: int, *, is_rank: bool = False) -> int:
        """What to add to a process's times.

        Args:
            start_unix_ns: Unix time of the process's time 0.
            first_ns: When its first record was over. A process for which that was before the capture's
                beginning, but which told it later, is moved there: nothing stands before 0.
            is_rank: It is a rank of a job: its times keep their relation to the other ranks'.
        """
        if not self._shared or not start_unix_ns:
            return -first_ns if self._from_first else 0
        if self._origin_unix_ns is None:
            self.begin(start_unix_ns + first_ns)
        assert self._origin_unix_ns is not None
        offset_ns = start_unix_ns - self._origin_unix_ns
        return offset_ns if is_rank else max(offset_ns, -first_ns)
