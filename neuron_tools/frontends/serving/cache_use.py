"""Ranges `kv_cache USED/TOTAL` in the profile: how many blocks of keys and values requests hold, how long."""

from __future__ import annotations

import atexit

from torch.profiler import record_function

Blocks = tuple[int, int]
"""Blocks that requests hold, and blocks that there are."""


class CacheUseRange:
    """The range that is open until another number of blocks is held, or the process ends."""

    def __init__(self) -> None:
        self._blocks: Blocks | None = None
        self._open: record_function | None = None
        atexit.register(self.end)  # before recording, which began earlier, ends: it keeps closed ranges only

    def hold(self, blocks: Blocks) -> None:
        """So many are held from now on."""
        if blocks == self._blocks:
            return
        self.end()
        self._blocks = blocks
        self._open = record_function("kv_cache {}/{}".format(*blocks))
        self._open.__enter__()

    def end(self) -> None:
        """Nothing is known of what is held from now on."""
        opened, self._open, self._blocks = self._open, None, None
        if opened is not None:
            opened.__exit__(None, None, None)
