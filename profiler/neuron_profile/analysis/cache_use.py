"""How many blocks of a server's KV cache its requests held, over time.

A range `kv_cache USED/TOTAL` (`torch.profiler.record_function`) is open while so many of the blocks are held.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

WINDOWS = 20
"""In which `analyze requests` tells the use."""
_RANGES = """
SELECT coalesce(process_idx, 0) AS process, split_part(split_part(name, ' ', 2), '/', 1)::BIGINT AS used,
    split_part(name, '/', 2)::BIGINT AS total, start_ts AS start_ns, end_ts AS end_ns
FROM HostSpan WHERE kind = 'range' AND regexp_matches(name, '^kv_cache \\d{1,18}/\\d{1,18}$')
ORDER BY start_ts
"""


@frozen
class CacheUse:
    """The KV cache in a window of time.

    Attributes:
        process: Of the capture: ProcessInfo.process_idx.
        start_ns: Of the window, from the profile's start.
        used_blocks: The most that requests held at once.
        blocks: How many there are.
        of_blocks: Their share, 0 to 1.
    """

    process: int
    start_ns: int
    used_blocks: int
    blocks: int
    of_blocks: float


@frozen
class HeldBlocks:
    """One process's blocks over time, from step to step.

    Attributes:
        process: Of the capture.
        blocks: How many there are.
        start_ns: When each number is held from, ascending.
        end_ns: Until when the last is.
        used: The numbers.
    """

    process: int
    blocks: int
    start_ns: tuple[int, ...]
    end_ns: int
    used: tuple[int, ...]

    @property
    def most(self) -> int:
        """The most at once."""
        return max(self.used)

    @property
    def share(self) -> float:
        """That as a part of all blocks, 0 to 1."""
        return _part(self.most, self.blocks)

    def in_windows(self, windows: int) -> list[CacheUse]:
        """The most in each of so many windows of equal length."""
        edges = np.linspace(self.start_ns[0], max(self.end_ns, self.start_ns[0] + 1), windows + 1)
        starts, used = np.array(self.start_ns), np.array(self.used)
        next_start = np.searchsorted(starts, edges[:-1], "left")
        is_start = starts[next_start.clip(max=len(starts) - 1)] == edges[:-1]
        first = next_start - ~is_start
        last = np.maximum(np.searchsorted(starts, edges[1:], "left"), first + 1)
        return [
            self._use(int(edge), int(used[begin:end].max())) for edge, begin, end in zip(edges, first, last)
        ]

    def _use(self, start_ns: int, used: int) -> CacheUse:
        return CacheUse(self.process, start_ns, used, self.blocks, _part(used, self.blocks))


def _part(used: int, blocks: int) -> float:
    return used / blocks if blocks else 0.0


def find_held_blocks(profile: Profile) -> tuple[HeldBlocks, ...]:
    """The blocks of each process that records them; empty where none does."""
    by_process: dict[int, list[dict[str, int]]] = {}
    for row in profile.query(_RANGES).to_pylist():
        by_process.setdefault(row["process"], []).append(row)
    return tuple(_held(process, rows) for process, rows in sorted(by_process.items()))


def _held(process: int, rows: Sequence[dict[str, int]]) -> HeldBlocks:
    return HeldBlocks(
        process=process,
        blocks=max(row["total"] for row in rows),
        start_ns=tuple(row["start_ns"] for row in rows),
        end_ns=max(row["end_ns"] for row in rows),
        used=tuple(row["used"] for row in rows),
    )
