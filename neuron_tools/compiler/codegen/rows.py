"""Fills the rows of a loop's instructions and DMAs, all iterations of a step at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.compiler.codegen.slot import PerIteration, Slot, Step
from neuron_tools.records.program import DMA_DTYPE, empty_table


def fill_compute(block: npt.NDArray[np.void], step: Step, iterations: Ints, places: Ints) -> None:
    """Write a compute step's rows: `places` in the block, one per active iteration."""
    block["activation"][places] = step.activation
    block["input_dtype"][places] = step.input_dtype
    block["output_dtype"][places] = step.output_dtype
    for column in ("partitions", "elements", "columns"):
        block[column][places] = _at(getattr(step, column), iterations)
    operands = (
        ("source", step.reads[:1]),
        ("second_source", step.reads[1:2]),
        ("destination", step.writes[:1]),
    )
    for column, slots in operands:
        for slot in slots:
            block[column][places] = _tile(slot, iterations)
    if step.reads:
        block["source_memory"][places] = step.reads[0].memory
    if step.writes:
        block["destination_memory"][places] = step.writes[0].memory


def fill_transfers(
    block: npt.NDArray[np.void], transfers: Sequence[tuple[Step, Ints, Ints]]
) -> npt.NDArray[np.void]:
    """The DMA rows of (step, active iterations, places in the block); the block's triggers name them."""
    places = np.concatenate([item[2] for item in transfers]) if transfers else np.zeros(0, np.int64)
    rank = np.empty(len(places), np.int64)
    rank[np.argsort(places, kind="stable")] = np.arange(len(places))
    dmas = empty_table(DMA_DTYPE, len(places))
    dmas["semaphore"] = -1
    start = 0
    for step, iterations, step_places in transfers:
        rows = rank[start : start + len(step_places)]
        start += len(step_places)
        block["dma"][step_places] = rows
        _fill_dma(dmas, rows, step, iterations)
    return dmas


def _at(value: PerIteration, iterations: Ints) -> PerIteration:
    return value[iterations] if isinstance(value, np.ndarray) else value


def _tile(slot: Slot, iterations: Ints) -> Ints:
    if slot.tiles is not None:
        return slot.tiles[slot.version[iterations]]
    return slot.first_tile + slot.version[iterations] % max(1, slot.buffers)


def _fill_dma(dmas: npt.NDArray[np.void], rows: Ints, step: Step, iterations: Ints) -> None:
    transfer = step.transfer
    assert transfer is not None
    size = np.asarray(_at(transfer.bytes, iterations), np.int64)
    dmas["queue"][rows] = transfer.queue
    dmas["source_memory"][rows] = transfer.source_memory
    dmas["destination_memory"][rows] = transfer.destination_memory
    dmas["purpose"][rows] = transfer.purpose
    dmas["dtype"][rows] = transfer.dtype
    dmas["transpose"][rows] = transfer.transpose
    dmas["strided"][rows] = transfer.strided
    dmas["bytes"][rows] = size
    dmas["descriptor_bytes"][rows] = np.minimum(transfer.descriptor_bytes, np.maximum(size, 1))
    dmas["descriptors"][rows] = -(-size // transfer.descriptor_bytes)
    dmas["partitions"][rows] = _at(transfer.partitions, iterations)
    dmas["tensor"][rows] = transfer.tensor
    dmas["hlo"][rows] = step.hlo
    touched = step.writes or step.reads
    if touched:
        wider = touched[0].dtype.byte_count // max(1, transfer.dtype.byte_count)
        dmas["cast"][rows] = wider if wider > 1 else 0
        dmas["tile"][rows] = _tile(touched[0], iterations)
