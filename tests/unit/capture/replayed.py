"""Rows that one execution of an executable adds, as plain Python values."""

from typing import Any

from neuron_tools import hardware
from neuron_tools.capture.executions import Execution, ExecutionTables
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.capture.table_template import ExecutionOrigin
from neuron_tools.records.executable import Executable

NO_ORIGIN = ExecutionOrigin()
CALLER = ExecutionOrigin(
    {"layer": "/caller", "stack_frame_ids": "99", "source_file": "call.py"},
    {"source_line": 5, "is_backward": False},
)


def plain(values: Any) -> list[Any]:
    """A column's values, whatever holds them."""
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    return list(values.tolist()) if hasattr(values, "tolist") else list(values)


def tables(
    executable: Executable,
    *,
    start_ns: int = 0,
    first_id: int = 0,
    core: int = 0,
    origin: ExecutionOrigin = NO_ORIGIN,
) -> dict[str, dict[str, list[Any]]]:
    """All device tables of one execution."""
    replayer = ExecutionTables(hardware.get("trn2", lnc=1), 0, first_id, StackRegistry())
    replayer.add(executable)
    rows = replayer.rows([Execution(executable.number, start_ns, core, (origin,))])
    return {name: {column: plain(values) for column, values in table.items()} for name, table in rows.items()}
