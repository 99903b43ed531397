"""CcOp: one row for each collective of each execution."""

from __future__ import annotations

import numpy as np

from neuron_tools import hardware
from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.table_template import TableTemplate
from neuron_tools.capture.tables.ids import at
from neuron_tools.capture.tables.kernels import KernelColumns, with_kernel_lines
from neuron_tools.capture.tables.origin import NUMBER_COLUMNS, TEXT_COLUMNS, Origins
from neuron_tools.capture.template import Template
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import Collective, CollectiveKind
from neuron_tools.simulator.collectives import cost

# Spellings of the published tools.
_OPERATIONS = {
    CollectiveKind.ALL_REDUCE: "AllReduce",
    CollectiveKind.ALL_GATHER: "AllGather",
    CollectiveKind.REDUCE_SCATTER: "ReduceScatter",
    CollectiveKind.ALL_TO_ALL: "AllToAll",
    CollectiveKind.BROADCAST: "Broadcast",
    CollectiveKind.PERMUTE: "Permute",
    CollectiveKind.BARRIER: "Barrier",
}


def collective_table(
    template: Template,
    core: NeuronCore,
    origins: Origins,
    pools: TextPools,
    kernel: KernelColumns | None = None,
) -> TableTemplate:
    """Relative CcOp rows of one executable; a kernel's have the lines that trigger them."""
    program = template.program
    rows = np.flatnonzero(program.dmas["collective"] >= 0)
    owner = at(template.hlo_framework, program.dmas["hlo"][rows])
    parts = [program.collectives[item] for item in program.dmas["collective"][rows]]
    stream = np.unique(program.dmas["queue"][rows], return_inverse=True)[1].astype(np.int64)
    links = hardware.links(hardware.device_of(core)) if parts else None
    costs = [cost(part.kind, part.byte_count, part.group, links) for part in parts if links is not None]
    seconds = np.maximum(template.dmas.end_ns[rows] - template.dmas.start_ns[rows], 1) * 1e-9
    sizes = [_sizes(part) for part in parts]
    bandwidth = np.array([part.byte_count for part in parts], np.float64) / seconds
    triggers = template.dma_instruction[rows]
    start_of = np.concatenate([template.instructions.start_ns, [0]])
    table = TableTemplate(
        rows=len(rows),
        numbers={
            "num_elements": np.array([_elements(part) for part in parts], np.int64),
            "op_id": rows.astype(np.int64),
            "stream_id": stream,
            "stream_index": stream,
            "input_size": np.array([size[0] for size in sizes], np.int64),
            "output_size": np.array([size[1] for size in sizes], np.int64),
            "algorithm_bandwidth": bandwidth,
            "bus_bandwidth": bandwidth * np.array([each.bus_factor for each in costs], np.float64),
            "cc_trigger_start_delay": template.dmas.start_ns[rows] - start_of[triggers],
            "replica_group_id": np.zeros(len(rows), np.int64),
            **origins.number_columns(NUMBER_COLUMNS, owner),
        },
        times={
            "start_ts": template.dmas.start_ns[rows],
            "end_ts": template.dmas.end_ns[rows],
            "trigger_start_ts": start_of[triggers],
        },
        references={},
        texts={
            "operation": pools["operation"].codes([_OPERATIONS[part.kind] for part in parts]),
            "algorithm": pools["algorithm"].codes([each.algorithm for each in costs]),
            "dtype": pools["dtype"].codes([part.dtype.name.lower() for part in parts]),
            "trigger_engine": pools["trigger_engine"].codes(
                [program.queues[queue].engine.title for queue in program.dmas["queue"][rows]]
            ),
            "replica_group": pools["replica_group"].codes(
                ["[" + ",".join(map(str, part.group)) + "]" for part in parts]
            ),
            **origins.text_codes(TEXT_COLUMNS | {"framework_name"}, owner, pools),
        },
        **origins.from_execution(template.executable.kind, TEXT_COLUMNS, owner),
    )
    return with_kernel_lines(table, kernel, triggers, pools)


def _elements(part: Collective) -> int:
    return part.byte_count // max(1, part.dtype.byte_count)


def _sizes(part: Collective) -> tuple[int, int]:
    """Bytes that a rank brings and gets: `byte_count` is the larger of the two."""
    ranks = max(1, len(part.group))
    if part.kind == CollectiveKind.ALL_GATHER:
        return part.byte_count // ranks, part.byte_count
    if part.kind == CollectiveKind.REDUCE_SCATTER:
        return part.byte_count, part.byte_count // ranks
    return part.byte_count, part.byte_count
