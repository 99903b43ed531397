"""DmaPacketAggregated: one row for each DMA transfer of each execution."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.table_template import TableTemplate
from neuron_tools.capture.tables.ids import IdLayout, at
from neuron_tools.capture.tables.kernels import KernelColumns, with_kernel_lines
from neuron_tools.capture.tables.origin import NUMBER_COLUMNS, PLACE_COLUMNS, Origins
from neuron_tools.capture.template import Template, memory_names, purpose_names, queue_kind_names
from neuron_tools.records.program import Memory, Program


def dma_table(
    template: Template,
    layout: IdLayout,
    origins: Origins,
    pools: TextPools,
    kernel: KernelColumns | None = None,
) -> TableTemplate:
    """Relative DmaPacketAggregated rows of one executable; a kernel's have the lines that trigger them."""
    program, dmas = template.program, template.program.dmas
    count, kind = len(dmas), template.executable.kind
    owner = at(template.hlo_framework, dmas["hlo"])
    duration_ns = np.maximum(template.dmas.end_ns - template.dmas.start_ns, 1)
    table = TableTemplate(
        rows=count,
        numbers={
            "block_id": np.arange(count, dtype=np.int32),
            "queue_idx": dmas["queue"].astype(np.int64),
            "read_bytes": dmas["bytes"],
            "write_bytes": dmas["bytes"],
            "transfer_bytes": dmas["bytes"],
            "throughput": (dmas["bytes"] * 1e9 / duration_ns).astype(np.float32),
            "read_num_sbuf_partitions": _sbuf_partitions(program, "source_memory"),
            "write_num_sbuf_partitions": _sbuf_partitions(program, "destination_memory"),
            "is_transpose_mode": dmas["transpose"] != 0,
            "packet_count": dmas["descriptors"].astype(np.int64),
            **origins.number_columns(NUMBER_COLUMNS, owner),
        },
        times={"start_ts": template.dmas.start_ns, "end_ts": template.dmas.end_ns},
        references={
            "id": layout.dma,
            "trigger": at(layout.instruction, template.dma_instruction),
            "raw_hlo_id": at(layout.hlo, dmas["hlo"]),
            "raw_framework_id": at(layout.framework, owner),
        },
        texts={
            **{name: pools[name].codes(texts) for name, texts in _texts(template).items()},
            **origins.text_codes(PLACE_COLUMNS | {"framework_name"}, owner, pools),
        },
        **origins.from_execution(kind, PLACE_COLUMNS, owner),
    )
    return with_kernel_lines(table, kernel, template.dma_instruction, pools)


def _texts(template: Template) -> dict[str, list[str]]:
    program, dmas = template.program, template.program.dmas
    names = [tensor.name for tensor in program.tensors] + [""]
    hlo = [operation.name for operation in program.hlo] + [""]
    shape = [f"[{d},{n}]" for d, n in zip(dmas["descriptors"].tolist(), dmas["descriptor_bytes"].tolist())]
    steps = [f"[{n},1]" for n in dmas["descriptor_bytes"].tolist()]
    return {
        "queue_name": [program.queues[queue].name for queue in dmas["queue"]],
        "queue_type": queue_kind_names(program),
        "op": purpose_names(program),
        "hlo_name": [hlo[row] for row in dmas["hlo"]],
        "variable": [names[tensor] for tensor in dmas["tensor"]],
        "source": memory_names(dmas["source_memory"]),
        "dest": memory_names(dmas["destination_memory"]),
        "semaphore_id": [f"S[{number}]" if number >= 0 else "-1" for number in dmas["semaphore"].tolist()],
        "read_sbuf_partitions": _partition_ranges(program, "source_memory"),
        "write_sbuf_partitions": _partition_ranges(program, "destination_memory"),
        **{f"{side}_shape": shape for side in ("read", "write")},
        **{f"{side}_offset": ["0"] * len(dmas) for side in ("read", "write")},
        **{f"{side}_steps": steps for side in ("read", "write")},
    }


def _sbuf_partitions(program: Program, side: str) -> npt.NDArray[np.int32]:
    on_sbuf = program.dmas[side] == Memory.SBUF
    return np.where(on_sbuf, program.dmas["partitions"], 0).astype(np.int32)


def _partition_ranges(program: Program, side: str) -> list[str]:
    first = np.zeros(len(program.dmas), np.int64)
    if len(program.tiles):
        tiles = program.dmas["tile"]
        first = np.where(tiles >= 0, program.tiles["start_partition"][np.maximum(tiles, 0)], 0)
    counts = _sbuf_partitions(program, side)
    return [f"{a}-{a + n - 1}" if n else "" for a, n in zip(first.tolist(), counts.tolist())]
