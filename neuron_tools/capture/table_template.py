"""A table's relative rows for one executable.

Times are relative to the execution's start, references are positions in the execution's own run of ids.
Replaying an execution (`replay`) adds one offset to the times and one to the references.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.capture import calling_stacks
from neuron_tools.capture.calling_stacks import CallingStacks
from neuron_tools.capture.columns import Codes, TextPools

Column = TypeVar("Column", bound=npt.NDArray[Any])
CORE_COLUMN = "pcore_idx"


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

    def called_from(
        self, origins: Sequence[ExecutionOrigin], pools: TextPools, calls: CallingStacks | None = None
    ) -> TableTemplate:
        """The same rows with what they take from an execution; they take no more from it then.

        Args:
            origins: Those of the execution's operations: one, or several that ran fused.
            pools: The table's text pools.
            calls: Continues the stacks of a graph's rows by that of its call.
        """
        numbers = {name: self._number(name, values, origins) for name, values in self.numbers.items()}
        texts = {name: self._text(name, codes, origins, pools, calls) for name, codes in self.texts.items()}
        return TableTemplate(self.rows, numbers, self.times, self.references, texts)

    def on_core(self, core: int, first_id: int) -> TableTemplate:
        """The rows as those of one of an execution's physical cores.

        Args:
            core: Counted from the execution's first.
            first_id: First of the core's own run of ids, in the execution's.
        """
        references = self.references
        if first_id:
            references = {
                name: np.where(local < 0, local, local + first_id) for name, local in references.items()
            }
        cores = np.full(self.rows, core, np.int64)
        return replace(self, numbers={**self.numbers, CORE_COLUMN: cores}, references=references)

    def _number(
        self, name: str, values: npt.NDArray[Any], origins: Sequence[ExecutionOrigin]
    ) -> npt.NDArray[Any]:
        if name in self.origin_numbers and name in origins[0].numbers:
            return self._with_origin(name, values, [origin.numbers[name] for origin in origins])
        if name in self.origin_flags and origins[0].numbers.get(name):
            return np.ones_like(values)
        return values

    def _text(
        self,
        name: str,
        codes: Codes,
        origins: Sequence[ExecutionOrigin],
        pools: TextPools,
        calls: CallingStacks | None,
    ) -> Codes:
        if name not in self.origin or name not in origins[0].texts:
            return codes
        if calls is not None and name == calling_stacks.COLUMN and self.origin_rows is not None:
            codes = calls.continued(codes, origins[0].texts[name], pools[name])
        return self._with_origin(name, codes, [pools[name].code(origin.texts[name]) for origin in origins])

    def _with_origin(self, name: str, values: npt.NDArray[Any], taken: Sequence[Any]) -> npt.NDArray[Any]:
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


@dataclass(frozen=True, eq=False)
class ExecutionOrigin:
    """What an eager operation, or a call of a graph, puts into the origin columns."""

    texts: Mapping[str, str | None] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)


def joined(templates: Sequence[TableTemplate]) -> TableTemplate:
    """The rows of several templates that take nothing from their execution, one below another."""
    filled = [template for template in templates if template.rows]
    if len(filled) < 2:
        return filled[0] if filled else TableTemplate(0)
    return TableTemplate(
        sum(template.rows for template in filled),
        _joined([template.numbers for template in filled]),
        _joined([template.times for template in filled]),
        _joined([template.references for template in filled]),
        _joined([template.texts for template in filled]),
    )


def _joined(columns: Sequence[Mapping[str, Column]]) -> dict[str, Any]:
    return {name: np.concatenate([each[name] for each in columns]) for name in columns[0]}
