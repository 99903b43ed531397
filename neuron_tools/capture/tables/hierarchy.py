"""HloInstruction and FrameworkInstruction: the levels above the instruction."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Ints
from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.table_template import TableTemplate
from neuron_tools.capture.tables.ids import IdLayout, at
from neuron_tools.capture.tables.origin import OPERATION_COLUMNS, PLACE_COLUMNS, TEXT_COLUMNS, Origins
from neuron_tools.capture.template import Span, Template
from neuron_tools.records.program import Engine

LIST_COLUMNS = (
    "element_count_per_interval",
    "transpose_element_count_per_interval",
    "hbm_transfer_size_per_interval",
)
_BYTE_COLUMNS = ("hbm_read_bytes", "hbm_write_bytes", "sbuf_read_bytes", "sbuf_write_bytes")


def hlo_table(
    template: Template, layout: IdLayout, work: dict[str, Ints], origins: Origins, pools: TextPools,
    charged: Span | None = None,
) -> TableTemplate:  # fmt: skip
    """HloInstruction rows.

    Args:
        work: Sums by HLO operation, of `work_by_hlo`.
        charged: The stretch that each is charged with, where the profile has no instructions to tell it.
    """
    rows, kind = template.hlo_rows, template.executable.kind
    owner, operations = template.hlo_framework[rows], [template.program.hlo[row] for row in rows]
    return TableTemplate(
        rows=len(rows),
        numbers={
            **_unused_ids(len(rows)),
            **_sums(work, rows),
            "executable_idx": np.full(len(rows), template.executable.number, np.int32),
            "model_flops": np.array([operation.model_flops for operation in operations], np.int64),
            **origins.number_columns(OPERATION_COLUMNS, owner),
        },
        times={
            "start_ts": template.hlo.start_ns[rows],
            "end_ts": template.hlo.end_ns[rows],
            **_charged_times(charged, rows),
        },
        references={
            "id": layout.hlo[rows],
            "raw_hlo_id": layout.hlo[rows],
            "raw_framework_id": at(layout.framework, owner),
        },
        texts={
            "hlo_name": pools["hlo_name"].codes(operation.name for operation in operations),
            "hlo_opcode": pools["hlo_opcode"].codes(operation.opcode for operation in operations),
            "shape": pools["shape"].codes(operation.shape for operation in operations),
            **origins.text_codes(PLACE_COLUMNS | {"framework_name"}, owner, pools),
        },
        **origins.from_execution(kind, PLACE_COLUMNS, owner, OPERATION_COLUMNS),
    )


def _charged_times(charged: Span | None, rows: Ints) -> dict[str, Ints]:
    if charged is None:
        return {}
    return {"charged_start_ts": charged.start_ns[rows], "charged_end_ts": charged.end_ns[rows]}


def framework_table(
    template: Template, layout: IdLayout, work: dict[str, Ints], origins: Origins, pools: TextPools
) -> TableTemplate:
    """FrameworkInstruction rows; each HLO operation's work counts for the operation that owns it."""
    rows, kind = template.framework_rows, template.executable.kind
    owned = {name: _by_owner(values, template) for name, values in work.items()}
    engines = {
        f"{engine.name.lower()}_engine_instruction_count": owned[engine.name][rows] for engine in Engine
    }
    return TableTemplate(
        rows=len(rows),
        numbers={
            **_unused_ids(len(rows)),
            **_sums(owned, rows),
            **engines,
            "executable_idx": np.full(len(rows), template.executable.number, np.int32),
            **origins.number_columns(OPERATION_COLUMNS, rows),
        },
        times={"start_ts": template.framework.start_ns[rows], "end_ts": template.framework.end_ns[rows]},
        references={
            "id": layout.framework[rows],
            "raw_framework_id": layout.framework[rows],
            "raw_hlo_id": at(layout.hlo, template.first_hlo()[rows]),
        },
        texts=origins.text_codes(TEXT_COLUMNS | {"framework_name"}, rows, pools),
        **origins.from_execution(kind, TEXT_COLUMNS, rows, OPERATION_COLUMNS),
    )


def with_intervals(columns: dict[str, Any]) -> dict[str, Any]:
    """Complete a level's columns: its one time interval as text, its counts as one-element lists."""
    starts, ends = (pa.array(columns[name]).cast(pa.string()) for name in ("start_ts", "end_ts"))
    columns["time_intervals"] = pc.binary_join_element_wise("[[", starts, ",", ends, "]]", "")
    offsets = np.arange(len(starts) + 1, dtype=np.int32)
    for name in LIST_COLUMNS:
        columns[name] = pa.ListArray.from_arrays(offsets, pa.array(columns[name], pa.int64()))
    return columns


def work_by_hlo(
    template: Template, counters: dict[str, npt.NDArray[Any]], dma_bytes: dict[str, Ints]
) -> dict[str, Ints]:
    """Sums over each HLO operation's instructions and DMAs: bytes, elements, instructions per engine."""
    program = template.program
    count, owner = len(program.hlo), program.instructions["hlo"]
    work = {name: _sum_by(owner, counters[name], count) for name in ("sbuf_read_bytes", "sbuf_write_bytes")}
    work["elements"] = _sum_by(owner, counters["tensor_elements"], count)
    work["transpose_elements"] = _sum_by(owner, counters["tensor_elements_transpose"], count)
    for name, values in dma_bytes.items():
        work[name] = _sum_by(program.dmas["hlo"], values, count)
    for engine in Engine:
        mine = (program.instructions["engine"] == engine).astype(np.int64)
        work[engine.name] = _sum_by(owner, mine, count)
    return work


def _sum_by(owner: npt.NDArray[Any], values: npt.NDArray[Any], count: int) -> Ints:
    sums = np.zeros(count, np.int64)
    owned = owner >= 0
    np.add.at(sums, owner[owned], values[owned])
    return sums


def _by_owner(values: Ints, template: Template) -> Ints:
    return _sum_by(template.hlo_framework, values, len(template.program.framework))


def _sums(work: dict[str, Ints], rows: Ints) -> dict[str, Ints]:
    columns = {name: work[name][rows] for name in _BYTE_COLUMNS}
    columns["element_count_per_interval"] = work["elements"][rows]
    columns["transpose_element_count_per_interval"] = work["transpose_elements"][rows]
    columns["hbm_transfer_size_per_interval"] = columns["hbm_read_bytes"] + columns["hbm_write_bytes"]
    return columns


def _unused_ids(rows: int) -> dict[str, Ints]:
    """Levels that this compiler does not have (Penguin, BIR); required by the schema."""
    return {"raw_bir_id": np.zeros(rows, np.int64), "raw_penguin_id": np.zeros(rows, np.int64)}
