"""The Instruction table: one row for each instruction of each execution."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.table_template import TableTemplate
from neuron_tools.capture.tables.dependencies import cause_positions
from neuron_tools.capture.tables.ids import IdLayout, at
from neuron_tools.capture.tables.kernels import KernelColumns, no_kernel, with_kernel
from neuron_tools.capture.tables.operands import operand_texts
from neuron_tools.capture.tables.origin import NUMBER_COLUMNS, TEXT_COLUMNS, Origins
from neuron_tools.capture.template import Template, engine_titles, opcode_names
from neuron_tools.records.program import Flag

COUNTER_COLUMNS = (
    "hbm_read_bytes", "hbm_write_bytes", "sbuf_read_bytes", "sbuf_write_bytes", "spill_save_bytes",
    "spill_reload_bytes", "psum_read_bytes", "psum_write_bytes", "psum_read_sbuf_write_bytes",
    "input_queue_bytes", "output_queue_bytes", "weight_queue_bytes", "tensor_elements", "raw_flops",
    "adjusted_flops", "tensor_elements_transpose", "flops_transpose", "adjusted_flops_transpose",
)  # fmt: skip


def instruction_table(
    template: Template,
    layout: IdLayout,
    counters: Mapping[str, npt.NDArray[np.int64]],
    estimates: npt.NDArray[np.bool_],
    origins: Origins,
    pools: TextPools,
    kernel: KernelColumns | None = None,
) -> TableTemplate:
    """Relative Instruction rows of one executable."""
    program, kind = template.program, template.executable.kind
    owner = _framework_rows(template)
    table = TableTemplate(
        rows=len(program.instructions),
        numbers={
            "pc": np.arange(len(program.instructions), dtype=np.int64),
            "raw_bir_id": np.arange(len(program.instructions), dtype=np.int64),
            "evt_wait_time_ns": template.wait_ns,
            "is_estimate": estimates,
            **{name: counters[name] for name in COUNTER_COLUMNS if name in counters},
            **_dma_wait(template),
            **origins.number_columns(NUMBER_COLUMNS, owner),
        },
        times={"start_ts": template.instructions.start_ns, "end_ts": template.instructions.end_ns},
        references={
            "id": layout.instruction,
            "raw_hlo_id": at(layout.hlo, program.instructions["hlo"]),
            "raw_framework_id": at(layout.framework, owner),
            "wait_cause_id": cause_positions(template, layout),
        },
        texts={
            **_texts(template, pools),
            **no_kernel(len(program.instructions), pools),
            **origins.text_codes(TEXT_COLUMNS | {"framework_name"}, owner, pools),
        },
        **origins.from_execution(kind, TEXT_COLUMNS, owner),
    )
    return with_kernel(table, kernel, pools)


def _framework_rows(template: Template) -> Ints:
    """Framework operation of each instruction: its HLO operation's owner; -1 = none."""
    return at(template.hlo_framework, template.program.instructions["hlo"])


def _texts(template: Template, pools: TextPools) -> dict[str, npt.NDArray[np.int32]]:
    program = template.program
    engines, hlo = engine_titles(program), [operation.name for operation in program.hlo] + [""]
    transposing = program.instructions["flags"] & Flag.TRANSPOSE != 0
    matmul_kind = np.where(transposing, "TRANSPOSE", "REGULAR")
    activations = [program.activations[index] or None for index in program.instructions["activation"]]
    return {
        "engine": pools["engine"].codes(engines),
        "timeline_track": pools["timeline_track"].codes(engines),
        "opcode": pools["opcode"].codes(opcode_names(program)),
        "operands": pools["operands"].codes(operand_texts(program)),
        "hlo_name": pools["hlo_name"].codes(hlo[row] for row in program.instructions["hlo"]),
        "bir_id": pools["bir_id"].codes(f"sg0000:{row}" for row in range(len(program.instructions))),
        "tensor_instruction_type": pools["tensor_instruction_type"].codes(
            [kind if engine == "Tensor" else None for kind, engine in zip(matmul_kind.tolist(), engines)]
        ),
        "scalar_activation_fn": pools["scalar_activation_fn"].codes(activations),
    }


def _dma_wait(template: Template) -> dict[str, Ints]:
    """Time from a trigger's end to its DMA's start; 0 for other instructions."""
    wait = np.zeros(len(template.program.instructions), np.int64)
    triggered = np.flatnonzero(template.dma_instruction >= 0)
    rows = template.dma_instruction[triggered]
    delay = template.dmas.start_ns[triggered] - template.instructions.end_ns[rows]
    wait[rows] = np.maximum(delay, 0)
    return {"dma_wait_time_ns": wait}
