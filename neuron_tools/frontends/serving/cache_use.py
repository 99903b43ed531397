"""Ranges `kv_cache USED/TOTAL` in the profile: how many blocks of keys and values requests hold, how long."""

from __future__ import annotations

from torch.profiler import record_function

Blocks = tuple[int, int]
"""Blocks that requests hold, and blocks that there are."""


class CacheUseRange:
    """The range that is open until another number of blocks is held."""

    def __init__(self) -> None:
        self._blocks: Blocks | None = None
        self._open: record_function | None = None

    def hold(self, blocks: Blocks) -> None:
        """So many are held from now on."""
        if blocks == self._blocks:
            return
        if self._open is not None:
            self._open.__exit__(None, None, None)
        self._blocks = blocks
        self._open = record_function("kv_cache {}/{}".format(*blocks))
        self._open.__enter__()
