"""Which queries meet which keys in the backward of attention: the iterations of its loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuron_tools.arrays import Bools, Ints
from neuron_tools.compiler.codegen.attention_tiles import first_seen


@dataclass(frozen=True)
class GradientTiles:
    """Which tiles each iteration is about; all arrays (iterations,).

    Attributes:
        keys: Number of the tile of keys, over all heads of keys; `queries` that of queries.
        first_keys, last_keys: Whether it is the first, or last, that meets its tile of queries.
        last_queries: Whether it is the last that meets its tile of keys.
        rows, width: Queries and keys in the tiles.
        masked: Whether some of the keys lie in the future of some of the queries.
    """

    keys: Ints
    queries: Ints
    first_keys: Bools
    last_keys: Bools
    last_queries: Bools
    rows: Ints
    width: Ints
    masked: Bools

    @classmethod
    def of(
        cls, heads: int, shared: int, sizes: tuple[int, int], tile: int, *, is_causal: bool
    ) -> GradientTiles:
        """All pairs, the queries of all heads that share keys one after the other for each tile of keys."""
        query_tiles, key_tiles = (-(-size // tile) for size in sizes)
        shape = (heads // shared, key_tiles, shared, query_tiles)
        group, key, head, query = (axis.ravel() for axis in np.indices(shape))
        seen = (key * tile < (query + 1) * tile) if is_causal else np.ones(len(key), bool)
        group, key, head, query = (axis[seen] for axis in (group, key, head, query))
        keys, queries = group * key_tiles + key, (group * shared + head) * query_tiles + query
        return cls(
            keys, queries, first_seen(queries), first_seen(queries[::-1])[::-1],
            np.diff(keys, append=-1) != 0, np.minimum(tile, sizes[0] - query * tile),
            np.minimum(tile, sizes[1] - key * tile), (key == query) & is_causal,
        )  # fmt: skip
