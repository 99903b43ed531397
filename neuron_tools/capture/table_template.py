"""A table's relative rows for one executable, and how many executions of them become one block.

Times are relative to the execution's start, references are positions in the execution's own run of ids.
Replaying an execution adds one offset to the times and one to the references.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.capture import calling_stacks
from neuron_tools.capture.calling_stacks import CallingStacks
from neuron_tools.capture.columns import Codes, TextPools

Column = TypeVar("Column", bound=npt.NDArray[Any])


@dataclass(frozen=True)
class TableTemplate:
    """Relative rows of one table for one executable; every column has `rows` entries.

    Attributes:
        numbers: Columns that are the same in each execution.
        times: Columns in ns from the execution's start.
        references: Columns that hold ids, as positions in the execution's run of ids; negative = null.
        texts: Text columns as codes of the table's pools.
        origin: Text columns that rows take from the line and module of their execution instead.
        origin_numbers: Number columns of which the same holds.
        origin_flags: Bool columns that are also true where their execution's is.
        origin_rows: Rows that take those columns from it, as bool; None = all.
        own: Columns with rows, as bool, that keep their own value all the same.
        members: For each row, which of a fused execution's operations it takes them from; None: there is one.
    """

    rows: int
    numbers: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    times: Mapping[str, Ints] = field(default_factory=dict)
    references: Mapping[str, Ints] = field(default_factory=dict)
    texts: Mapping[str, Codes] = field(default_factory=dict)
    origin: frozenset[str] = frozenset()
    origin_numbers: frozenset[str] = frozenset()
    origin_flags: frozenset[str] = frozenset()
    origin_rows: npt.NDArray[np.bool_] | None = None
    own: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    members: Ints | None = None

    def sharing(self, other: TableTemplate) -> TableTemplate:
        """The same rows, holding the columns of another table of the same code where they are equal."""
        return replace(
            self,
            numbers=_shared(self.numbers, other.numbers),
            times=_shared(self.times, other.times),
            references=_shared(self.references, other.references),
            texts=_shared(self.texts, other.texts),
        )

    def with_origin(self, name: str, values: npt.NDArray[Any], taken: Sequence[Any]) -> npt.NDArray[Any]:
        """A column in which the rows of `origin_rows` have the value of their operation, one of `taken`."""
        kept = self.own.get(name)
        if self.members is not None:
            return np.asarray(taken, values.dtype)[np.clip(self.members, 0, len(taken) - 1)]
        taken = taken[0]
        if self.origin_rows is None and kept is None:
            return np.full(self.rows, taken, values.dtype)
        chosen = np.ones(self.rows, bool) if self.origin_rows is None else self.origin_rows
        if kept is not None:
            chosen = chosen & ~kept
        return np.where(chosen, np.asarray(taken, values.dtype), values)


def _shared(columns: Mapping[str, Column], others: Mapping[str, Column]) -> dict[str, Column]:
    """The columns, those of `others` where they are equal."""
    return {
        name: others[name] if name in others and np.array_equal(column, others[name]) else column
        for name, column in columns.items()
    }


@dataclass(frozen=True)
class ExecutionOrigin:
    """What an eager operation, or a call of a graph, puts into the origin columns."""

    texts: Mapping[str, str | None] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Replay:
    """Executions to write, in order.

    Attributes:
        start_ns: Device time at which each starts.
        first_id: First id of each execution's run of ids.
        origins: Those of each execution's operations: one, or several that ran fused.
        constants: Per-execution numbers that all its rows get (e.g. process_idx, pcore_idx).
    """

    start_ns: Ints
    first_id: Ints
    origins: Sequence[Sequence[ExecutionOrigin]]
    constants: Mapping[str, Ints]


def replay(
    templates: Sequence[TableTemplate], block: Replay, pools: TextPools, calls: CallingStacks | None = None
) -> dict[str, Any] | None:
    """Columns of all executions' rows of one table; None where there is no row.

    Args:
        templates: The table's template of each execution of the block, in order.
        block: Offsets and origins, one entry per template.
        pools: The table's text pools.
        calls: Continues the stacks of a graph's rows by that of its call.
    """
    lengths = np.array([template.rows for template in templates], np.int64)
    if not lengths.sum():
        return None
    first = next(template for template in templates if template.rows)
    columns: dict[str, Any] = {}
    for name in first.numbers:
        columns[name] = _numbers(name, templates, block)
    for name in first.times:
        columns[name] = _join(templates, "times", name) + np.repeat(block.start_ns, lengths)
    for name in first.references:
        columns[name] = _references(_join(templates, "references", name), np.repeat(block.first_id, lengths))
    for name, values in block.constants.items():
        columns[name] = np.repeat(values, lengths)
    texts = {name: _texts(name, templates, block, pools, calls) for name in first.texts}
    return pools.table(columns, texts)


def _join(templates: Sequence[TableTemplate], group: str, name: str) -> npt.NDArray[Any]:
    return np.concatenate([getattr(t, group)[name] for t in templates if t.rows])


def _references(local: Ints, first_id: Ints) -> pa.Array:
    return pa.array(local + first_id, mask=local < 0)


def _numbers(name: str, templates: Sequence[TableTemplate], block: Replay) -> npt.NDArray[Any]:
    parts = []
    for template, origins in zip(templates, block.origins):
        if template.rows:
            values = template.numbers[name]
            if name in template.origin_numbers and name in origins[0].numbers:
                values = template.with_origin(name, values, [origin.numbers[name] for origin in origins])
            elif name in template.origin_flags and origins[0].numbers.get(name):
                values = np.ones_like(values)
            parts.append(values)
    return np.concatenate(parts)


def _texts(
    name: str,
    templates: Sequence[TableTemplate],
    block: Replay,
    pools: TextPools,
    calls: CallingStacks | None,
) -> Codes:
    parts = []
    for template, origins in zip(templates, block.origins):
        if not template.rows:
            continue
        codes = template.texts[name]
        if name in template.origin and name in origins[0].texts:
            if calls is not None and name == calling_stacks.COLUMN and template.origin_rows is not None:
                codes = calls.continued(codes, origins[0].texts[name], pools[name])
            taken = [pools[name].code(origin.texts[name]) for origin in origins]
            codes = template.with_origin(name, codes, taken)
        parts.append(codes)
    return np.concatenate(parts)
