"""Rows of runs of executions: those of each kind are laid down once, and gathered as often as it ran.

A loop of eager operations runs the same few thousand kinds of execution millions of times: the work is done
per kind and per column, not per execution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Array, Ints
from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.table_template import CORE_COLUMN, TableTemplate, joined
from neuron_tools.frozen import frozen


@frozen
class Replay:
    """Executions to write, in order; shape of each array (executions,).

    Attributes:
        kinds: Which of the kinds that are laid down each is.
        start_ns: Device time at which each starts.
        first_id: First id of each execution's run of ids.
        first_core: First physical core of each.
    """

    kinds: Ints
    start_ns: Ints
    first_id: Ints
    first_core: Ints


class LaidTable:
    """Rows of one table, those of one kind of execution below those of another."""

    def __init__(self) -> None:
        self._laid = TableTemplate(0)
        self._counts = np.zeros(0, np.int64)

    @property
    def rows(self) -> int:
        """Rows of all kinds."""
        return self._laid.rows

    def add(self, kinds: Sequence[TableTemplate]) -> None:
        """Lay down further kinds, which get the next numbers.

        Args:
            kinds: Rows that take nothing from their execution; `pcore_idx` counts from its first core.
        """
        self._laid = joined([self._laid, *kinds])
        self._counts = np.append(self._counts, [kind.rows for kind in kinds]).astype(np.int64)

    def replay(self, block: Replay, pools: TextPools) -> dict[str, Any] | None:
        """Columns of all executions' rows; None where there is no row."""
        counts = self._counts[block.kinds]
        if not counts.any():
            return None
        execution = np.repeat(np.arange(len(counts)), counts)
        rows = self._places(block.kinds, counts, execution)
        columns: dict[str, Any] = _taken(self._laid.numbers, rows)
        columns[CORE_COLUMN] = columns[CORE_COLUMN] + block.first_core[execution]
        for name, times in _taken(self._laid.times, rows).items():
            columns[name] = times + block.start_ns[execution]
        for name, local in _taken(self._laid.references, rows).items():
            columns[name] = pa.array(local + block.first_id[execution], mask=local < 0)
        return pools.table(columns, _taken(self._laid.texts, rows))

    def _places(self, kinds: Ints, counts: Ints, execution: Ints) -> Ints | slice:
        if len(kinds) == len(self._counts) == 1:
            return slice(None)
        laid_at = np.cumsum(self._counts) - self._counts
        return np.arange(len(execution)) + (laid_at[kinds] - np.cumsum(counts) + counts)[execution]


def _taken(columns: Any, rows: Ints | slice) -> dict[str, Array]:
    return {name: values[rows] for name, values in columns.items()}
