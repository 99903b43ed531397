"""The device tables of a run of executions: replays each execution's templates at its place in time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neuron_tools.capture.calling_stacks import CallingStacks
from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.replay import LaidTable, Replay
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.capture.table_template import CORE_COLUMN, ExecutionOrigin, TableTemplate, joined
from neuron_tools.capture.tables import (
    collectives,
    dependencies,
    hierarchy,
    instructions,
    origin,
    shares,
    transfers,
    usage,
)
from neuron_tools.capture.tables.charged import charged_stretches
from neuron_tools.capture.tables.ids import IdLayout, id_layout
from neuron_tools.capture.tables.kernels import KernelColumns, kernel_columns
from neuron_tools.capture.template import Template, make_template
from neuron_tools.hardware import NeuronCore
from neuron_tools.profile.schema import TABLES
from neuron_tools.records.executable import Executable
from neuron_tools.simulator import counters
from neuron_tools.simulator.instruction_costs import is_estimate

Ints = npt.NDArray[np.int64]
LEVELS = ("HloInstruction", "FrameworkInstruction")
MOST_ROWS = 1 << 19
"""Of all tables: of a block, and of the kinds of execution that are kept for the next one. About 60 MB."""


class Execution(NamedTuple):
    """One execution of an executable on a NeuronCore.

    Attributes:
        core: Logical NeuronCore; the rows name its physical ones.
        origins: Where it was asked for: one place, or that of each of the operations that ran fused.
    """

    executable: int
    start_ns: int
    core: int
    origins: tuple[ExecutionOrigin, ...]


@dataclass(frozen=True)
class ExecutableRows:
    """All table templates of one executable, and how many ids an execution of it takes."""

    executable: Executable
    tables: Mapping[str, TableTemplate]
    id_count: int


class _LaidKinds:
    """The rows of kinds of execution: of an executable that was asked for at one place."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, tuple[ExecutionOrigin, ...]], int] = {}
        self.tables: dict[str, LaidTable] = defaultdict(LaidTable)

    @property
    def rows(self) -> int:
        """Of all tables."""
        return sum(table.rows for table in self.tables.values())


@dataclass(eq=False)
class ExecutionTables:
    """Builds device rows for one process's executions, in order.

    Args:
        core: The NeuronCore that they run on.
        process_idx: Number of the process.
        next_id: Id of the next row; ids count up from it.
        stacks: Gets the source stacks of operations.
        with_instructions: Whether to build the tables of single instructions, transfers and samples as well.
    """

    core: NeuronCore
    process_idx: int
    next_id: int
    stacks: StackRegistry
    with_instructions: bool = True

    def __post_init__(self) -> None:
        self._calls = CallingStacks(self.stacks)
        self._pools: dict[str, TextPools] = defaultdict(TextPools)
        self._rows: dict[int, tuple[ExecutableRows, ...]] = {}
        self._of_code: dict[int, tuple[ExecutableRows, ...]] = {}
        self._row_counts: dict[int, int] = {}
        self._id_counts: dict[int, int] = {}
        self._laid = _LaidKinds()

    def add(self, executable: Executable) -> None:
        """Make an executable known; what it has in common with others of the same code is kept once."""
        rows = tuple(map(self._templates, executable.of_cores))
        code = id(executable.program.instructions)
        first = self._of_code.setdefault(code, rows)
        rows = self._rows[executable.number] = tuple(map(_in_common, first, rows))
        self._row_counts[executable.number] = sum(
            table.rows for each in rows for table in each.tables.values()
        )
        self._id_counts[executable.number] = sum(each.id_count for each in rows)

    def knows(self, number: int) -> bool:
        """Whether the executable was added."""
        return number in self._rows

    def blocks(self, executions: Sequence[Execution]) -> Iterator[Sequence[Execution]]:
        """The executions in runs of a bounded number of rows, or of one that has more."""
        ends = np.cumsum([self._row_counts[execution.executable] for execution in executions])
        first = done = 0
        while first < len(executions):
            last = max(int(np.searchsorted(ends, done + MOST_ROWS, "right")), first + 1)
            yield executions[first:last]
            first, done = last, int(ends[last - 1])

    def rows(self, executions: Sequence[Execution]) -> dict[str, dict[str, Any]]:
        """Columns by table for these executions."""
        if not executions:
            return {}
        if len(executions) == 1:  # of a graph, maybe, so large that a copy of its rows is not kept
            laid = _LaidKinds()
        else:
            if self._laid.rows > MOST_ROWS:
                self._laid = _LaidKinds()
            laid = self._laid
        block = self._block(executions, self._kinds(executions, laid))
        tables = {}
        for name, table in laid.tables.items():
            columns = table.replay(block, self._pools[name])
            if columns is not None:
                columns["process_idx"] = np.full(len(columns[CORE_COLUMN]), self.process_idx, np.int64)
                tables[name] = _complete(name, columns)
        return tables

    def _kinds(self, executions: Sequence[Execution], laid: _LaidKinds) -> Ints:
        """The kind of each execution, laid down where it was not."""
        keys = [(execution.executable, execution.origins) for execution in executions]
        new = [key for key in dict.fromkeys(keys) if key not in laid.numbers]
        for key in new:
            laid.numbers[key] = len(laid.numbers)
        if new:
            for name in self._rows[new[0][0]][0].tables:
                laid.tables[name].add([self._of_cores(name, *key) for key in new])
        return np.array([laid.numbers[key] for key in keys], np.int64)

    def _of_cores(self, name: str, executable: int, origins: tuple[ExecutionOrigin, ...]) -> TableTemplate:
        """The rows of all physical cores, whose runs of ids follow each other."""
        parts, first_id = [], 0
        for core, rows in enumerate(self._rows[executable]):
            table = rows.tables[name]
            if table.rows:
                placed = table.called_from(origins, self._pools[name], self._calls)
                parts.append(placed.on_core(core, first_id))
            first_id += rows.id_count
        return joined(parts)

    def _block(self, executions: Sequence[Execution], kinds: Ints) -> Replay:
        id_counts = np.array([self._id_counts[execution.executable] for execution in executions], np.int64)
        first_id = self.next_id + np.cumsum(id_counts) - id_counts
        self.next_id += int(id_counts.sum())
        cores = np.array([execution.core for execution in executions], np.int64)
        return Replay(
            kinds=kinds,
            start_ns=np.array([execution.start_ns for execution in executions], np.int64),
            first_id=first_id,
            first_core=cores * self.core.logical_core_size,
        )

    def _templates(self, executable: Executable) -> ExecutableRows:
        template, pools = make_template(executable), self._pools
        program, layout = executable.program, id_layout(template)
        counted = counters.instruction_counters(program, self.core)
        counts = {field.name: getattr(counted, field.name) for field in fields(counted)}
        moved = counters.dma_counters(program)
        dma_bytes = {"hbm_read_bytes": moved.hbm_read_bytes, "hbm_write_bytes": moved.hbm_write_bytes}
        work = hierarchy.work_by_hlo(template, counts, dma_bytes)
        origins = origin.origins(program.framework, self.stacks)
        kernel = kernel_columns(executable, self.stacks)
        tables = {
            "HloInstruction": hierarchy.hlo_table(
                template,
                layout,
                work,
                origins,
                pools["HloInstruction"],
                None if self.with_instructions else charged_stretches(template),
            ),
            "FrameworkInstruction": hierarchy.framework_table(
                template, layout, work, origins, pools["FrameworkInstruction"]
            ),
            "FrameworkShare": shares.share_table(template, layout),
            "CcOp": collectives.collective_table(template, self.core, origins, pools["CcOp"], kernel),
        }
        if self.with_instructions:
            tables.update(self._instruction_tables(template, layout, counts, origins, kernel))
        return ExecutableRows(executable, tables, layout.count)

    def _instruction_tables(
        self,
        template: Template,
        layout: IdLayout,
        counts: Mapping[str, Ints],
        origins: origin.Origins,
        kernel: KernelColumns | None,
    ) -> dict[str, TableTemplate]:
        """Those with a row for each instruction, transfer or sample."""
        executable, pools = template.executable, self._pools
        estimates = is_estimate(executable.program.instructions, self.core)
        return {
            "Instruction": instructions.instruction_table(
                template,
                layout,
                counts,
                estimates,
                origins,
                pools["Instruction"],
                kernel,
            ),
            "DmaPacketAggregated": transfers.dma_table(
                template, layout, origins, pools["DmaPacketAggregated"], kernel
            ),
            "Flow": dependencies.flow_table(template, layout, pools["Flow"]),
            "SemaphoreUpdate": dependencies.semaphore_table(template, pools["SemaphoreUpdate"]),
            **usage.usage_tables(executable, self.core, pools),
        }


def _in_common(first: ExecutableRows, rows: ExecutableRows) -> ExecutableRows:
    """The rows, with the first's columns where they are equal."""
    if first is rows:
        return rows
    tables = {name: table.sharing(first.tables[name]) for name, table in rows.tables.items()}
    return replace(rows, tables=tables)


def _complete(name: str, columns: dict[str, Any]) -> dict[str, Any]:
    """Columns that follow from others."""
    if "start_ts" in columns and name not in LEVELS:
        columns["duration_ns"] = columns["end_ts"] - columns["start_ts"]
    if name in LEVELS:
        hierarchy.with_intervals(columns)
    known = TABLES[name].column_names
    return {column: values for column, values in columns.items() if column in known}
