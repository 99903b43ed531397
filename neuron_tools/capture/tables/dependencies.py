"""Flow and SemaphoreUpdate: who released whom."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.table_template import TableTemplate
from neuron_tools.capture.tables.ids import IdLayout, at
from neuron_tools.capture.template import Template, engine_titles

INSTRUCTION_TABLE, DMA_TABLE = "Instruction", "DmaPacketAggregated"


def cause_positions(template: Template, layout: IdLayout) -> Ints:
    """Id position of what decided each instruction's start (an instruction or a DMA); -1 = nothing."""
    cause = template.executable.simulation.wait_cause.astype(np.int64)
    instruction = at(layout.instruction, np.where(cause >= 0, cause, -1))
    dma = at(layout.dma, np.where(cause <= -2, -2 - cause, -1))
    return np.where(cause >= 0, instruction, dma)


def flow_table(template: Template, layout: IdLayout, pools: TextPools) -> TableTemplate:
    """Flow rows, from cause (`in`) to effect (`out`): semaphore releases and DMA triggers."""
    cause = template.executable.simulation.wait_cause.astype(np.int64)
    held = np.flatnonzero(cause != -1)
    triggered = np.flatnonzero(template.dma_instruction >= 0)
    trigger_rows = template.dma_instruction[triggered]
    by_dma = cause[held] <= -2
    cause_end = np.where(
        by_dma,
        _take(template.dmas.end_ns, -2 - cause[held]),
        _take(template.instructions.end_ns, cause[held]),
    )
    gap = np.concatenate(
        [
            template.instructions.start_ns[held] - cause_end,
            template.dmas.start_ns[triggered] - template.instructions.end_ns[trigger_rows],
        ]
    )
    sources = np.where(by_dma, DMA_TABLE, INSTRUCTION_TABLE).tolist() + [INSTRUCTION_TABLE] * len(triggered)
    targets = [INSTRUCTION_TABLE] * len(held) + [DMA_TABLE] * len(triggered)
    kinds = ["semaphore"] * len(held) + ["dma_trigger"] * len(triggered)
    return TableTemplate(
        rows=len(gap),
        numbers={"gap_time": np.maximum(gap, 0)},
        references={
            "in_id": np.concatenate(
                [cause_positions(template, layout)[held], layout.instruction[trigger_rows]]
            ),
            "out_id": np.concatenate([layout.instruction[held], layout.dma[triggered]]),
        },
        texts={
            "in_table": pools["in_table"].codes(sources),
            "out_table": pools["out_table"].codes(targets),
            "dependency_type": pools["dependency_type"].codes(kinds),
        },
    )


def semaphore_table(template: Template, pools: TextPools) -> TableTemplate:
    """SemaphoreUpdate rows: each completion that counts a semaphore up, with the value it reaches."""
    program = template.program
    signalling = np.flatnonzero(program.instructions["signal"] >= 0)
    writing = np.flatnonzero(program.dmas["semaphore"] >= 0)
    semaphore = np.concatenate(
        [program.instructions["signal"][signalling], program.dmas["semaphore"][writing]]
    )
    increment = np.concatenate([np.ones(len(signalling), np.int64), program.dmas["increment"][writing]])
    time_ns = np.concatenate([template.instructions.end_ns[signalling], template.dmas.end_ns[writing]])
    engines = engine_titles(program)
    source = [engines[row] for row in signalling] + ["DMA"] * len(writing)
    order = np.lexsort((time_ns, semaphore))
    return TableTemplate(
        rows=len(order),
        numbers={"value": _running_value(semaphore[order], increment[order]).astype(np.int32)},
        times={"timestamp": time_ns[order]},
        texts={
            "id": pools["id"].codes(f"S[{number}]" for number in semaphore[order]),
            "update_source": pools["update_source"].codes([source[row] for row in order]),
            "update_operation_type": pools["update_operation_type"].codes(["sem_add_imm"] * len(order)),
            "update_trigger_timing": pools["update_trigger_timing"].codes(["complete"] * len(order)),
        },
    )


def _take(values: Ints, rows: Ints) -> Ints:
    """values[rows], 0 where the row is out of range (another branch is chosen there)."""
    if not len(values):
        return np.zeros(len(rows), np.int64)
    return values[np.clip(rows, 0, len(values) - 1)]


def _running_value(semaphore: npt.NDArray[np.integer], increment: Ints) -> Ints:
    """Cumulative sum that starts again at each new semaphore."""
    total = np.cumsum(increment)
    first = np.flatnonzero(np.diff(semaphore, prepend=-1))
    before = np.zeros(len(total), np.int64)
    before[first] = total[first] - increment[first] if len(first) else 0
    return total - np.maximum.accumulate(before) if len(total) else total
