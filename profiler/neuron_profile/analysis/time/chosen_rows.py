"""The rows of a table that have some ids: asked for by number, or read with what lies between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.profile.reader import Profile

NO_ID = -1
MOST_BETWEEN = 100_000
"""Further rows between two ids that are read: cheaper than to tell the database which ones are wanted."""


def chosen_rows(profile: Profile, table: str, query: str, column: str, wanted: Ints) -> pa.Table:
    """The rows of a query that have the ids wanted, and perhaps others between them.

    Args:
        table: What is queried.
        query: Its condition is `{chosen}`.
        column: Of the ids.
        wanted: In any order; `NO_ID` is none.
    """
    known = wanted[wanted != NO_ID]
    if not len(known) or table not in profile.tables():
        return profile.query(query.format(chosen="false"))
    bounds: list[Any] = [int(known.min()), int(known.max())]
    condition = f"{column} BETWEEN ? AND ?"
    if not _is_dense(profile, f"SELECT count(*) AS n FROM {table} WHERE {condition}", bounds, known):
        condition += f" AND {column} IN (SELECT unnest(?))"
        bounds.append(np.unique(known).tolist())
    return profile.query(query.format(chosen=condition), bounds)


def _is_dense(profile: Profile, counting: str, bounds: Sequence[Any], known: Ints) -> bool:
    """Whether few other rows lie between the first and the last id; how many do is told by a query."""
    low, high = bounds
    if high - low < MOST_BETWEEN:
        return True
    further = profile.query(counting, bounds)["n"][0].as_py() - MOST_BETWEEN
    return bool(further <= 0 or further <= len(np.unique(known)))
