"""What the routes answer: plain objects for JSON, times in ns, shares from 0 to 1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import pyarrow as pa

from neuron_explorer.api.source_costs import FunctionWork, SourceCosts, Work
from neuron_explorer.library import ProfileEntry
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.hotspots import Hotspots, ModuleNode
from neuron_profile.analysis.identity import Identity
from neuron_profile.analysis.line_executions import Stop
from neuron_profile.analysis.whatif.run import Gain
from neuron_profile.fix.propose import EDITORS

Json = dict[str, Any]
LONGEST_TEXT = 4096
LARGEST_INTEGER = 2**53
MODULE_DEPTH = 60


def entry_json(entry: ProfileEntry) -> Json:
    """A profile of the library, open or not."""
    return {"id": entry.id, "name": entry.name, "location": entry.location, "folder": entry.folder}


def identity_json(identity: Identity) -> Json:
    """The facts of a profile."""
    return {**asdict(identity), "path": str(identity.path), "name": identity.name}


def sources_json(files: list[Json], instructions: int) -> Json:
    """Source files of a profile with the hash of the text that ran, and how large the profile is.

    Args:
        files: Rows with `path` and `sha256`, null where the profile does not keep the text.
    """
    return {"files": files, "instructions": instructions}


def file_json(costs: SourceCosts, file: str) -> Json:
    """Lines and functions of one file; empty where the profile has nothing of it."""
    found = costs.files.get(file)
    if found is None:
        return {"path": file, "device_ns": costs.device_ns, "lines": [], "functions": []}
    lines = [
        {
            "line": line,
            **_work_json(found.own.get(line, Work()), costs),
            "own_code": _work_json(found.own_code.get(line, Work()), costs),
            "total": _work_json(total, costs),
        }
        for line, total in sorted(found.total.items())
    ]
    functions = [_function_json(row, costs) for row in found.functions]
    return {"path": file, "device_ns": costs.device_ns, "lines": lines, "functions": functions}


def _function_json(row: FunctionWork, costs: SourceCosts) -> Json:
    return {
        **asdict(row.function),
        **_work_json(row.own, costs),
        "own_code": _work_json(row.own_code, costs),
        "total": {**_work_json(row.total, costs), "mfu": row.total.mfu(costs.peak_flops)},
    }


def _work_json(work: Work, costs: SourceCosts) -> Json:
    return {
        "device_ns": work.device_ns,
        "share": share(work.device_ns, costs.device_ns),
        "backward_ns": work.backward_ns,
        "calls": work.calls,
        "instructions": work.instructions,
        "hbm_bytes": work.hbm_bytes,
        "flops": work.flops,
        "engine_ns": work.engine_ns,
    }


def finding_json(finding: Finding) -> Json:
    """A finding of the advice."""
    has_editor = finding.rule in EDITORS.names() and bool(finding.place.file)
    return {**asdict(finding), "gain": finding.gain, "has_editor": has_editor}


def stop_json(stop: Stop) -> Json:
    """Where a debugger has to stop."""
    return asdict(stop)


def gain_json(gain: Gain) -> Json:
    """What a change would give."""
    return {**asdict(gain), "total_gain_ns": gain.total_gain_ns, "total_gain": gain.total_gain}


def hierarchy_json(hotspots: Hotspots) -> Json:
    """Modules as a tree, operations, and lines, each by falling device time."""
    return {
        "device_ns": hotspots.device_ns,
        "unattributed_ns": hotspots.unattributed_ns,
        "modules": _module_json(hotspots.modules, hotspots.device_ns, 0),
        "operations": [
            {"name": row.name, "device_ns": row.cost.device_ns, "count": row.cost.count,
             "share": share(row.cost.device_ns, hotspots.device_ns)}
            for row in hotspots.operations
        ],
        "lines": [
            {"file": row.place.file, "line": row.place.line, "function": row.function,
             "device_ns": row.cost.device_ns, "share": share(row.cost.device_ns, hotspots.device_ns)}
            for row in hotspots.lines
        ],
    }  # fmt: skip


def _module_json(module: ModuleNode, device_ns: float, depth: int) -> Json:
    children = module.children if depth < MODULE_DEPTH else ()
    return {
        "path": module.path,
        "name": module.name,
        "device_ns": module.cost.device_ns,
        "own_ns": module.own_ns,
        "count": module.cost.count,
        "share": share(module.cost.device_ns, device_ns),
        "children": [_module_json(child, device_ns, depth + 1) for child in children],
    }


def table_json(table: pa.Table, limit: int) -> Json:
    """The first rows of a result, as column names and rows of plain values."""
    shown = table.slice(0, limit)
    columns = [[plain(value) for value in column.to_pylist()] for column in shown.columns]
    return {
        "columns": table.column_names,
        "rows": [list(row) for row in zip(*columns)],
        "row_count": table.num_rows,
    }


def plain(value: Any) -> Any:
    """A value as JSON has it: long texts cut, integers that a double cannot hold and the rest as text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= LARGEST_INTEGER else str(value)
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return plain(int(value))
    if isinstance(value, (float, Decimal)):
        value = float(value)
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return _short(str(value))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"


def share(part: float, whole: float) -> float:
    """A part of a whole, 0 to 1."""
    return min(1.0, max(0.0, part / whole)) if whole else 0.0
