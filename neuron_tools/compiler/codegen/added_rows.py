"""A bias that starts the sums of a product: ones times the row, on the Tensor engine.

A row that is added on the way out of PSUM has to be on all partitions, and a DMA would move a copy to each
of them: 128 times its bytes, ahead of weights that wait for the same rings. As the first product of the sums
it is loaded once, and no other engine adds it. A float32 row that the compiler stores is kept as three
bfloat16 rows whose sum it is, since products of that type take one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.engines import instruction_ns
from neuron_tools.compiler.codegen.location import Location
from neuron_tools.compiler.codegen.micro import External, Key, Micro, Selection
from neuron_tools.compiler.codegen.slot import Slot, Transfer
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.passes.groups import Shape
from neuron_tools.frozen import frozen
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.records.program import DType, Engine, Memory, Opcode, TensorKind

PARTS = 3
"""bfloat16 numbers of 8 significant bits that add up to a float32 number of 24."""


@frozen
class AddedRow:
    """A row that starts the sums: where it is, its elements, and how many rows make it up."""

    location: Location
    columns: int
    parts: int
    dtype: DType


def take_added_row(
    context: Context, selection: Selection, product: Key, columns: int, row_tiles: int
) -> tuple[Selection, AddedRow | None]:
    """The selection without the addition of a row to a product, and the row, where that is quicker."""
    for micro in selection.micros:
        external = _added(selection, micro, product)
        if external is None:
            continue
        row = _stored_row(context, external, columns)
        if row is not None and _pays(context.core, row, row_tiles):
            return _without(selection, micro, product, external), row
    return selection, None


def _added(selection: Selection, micro: Micro, product: Key) -> External | None:
    """The vector along the columns that an instruction, the only one to read the product, adds to it."""
    is_addition = (
        micro.opcode is Opcode.TENSOR_TENSOR and micro.source.opcode == "add" and not micro.activation
    )
    if not is_addition or micro.shape is not Shape.FULL or micro.reduces is not None:
        return None
    if product not in micro.reads or sum(product in other.reads for other in selection.micros) != 1:
        return None
    others = [selection.externals.get(key) for key in micro.reads if key != product]
    alone = product not in selection.stored.values()
    return others[0] if len(others) == 1 and alone and others[0] is not None else None


def _stored_row(context: Context, external: External, columns: int) -> AddedRow | None:
    if external.form != "column" or external.view.root < 0 or external.view.run_elements < columns:
        return None
    location = context.location(external.view.root)
    if not location.waits_for_room_only:
        return None
    if location.dtype.byte_count <= DType.BF16.byte_count:
        return AddedRow(location, columns, 1, location.dtype)
    is_kept = location.kind is TensorKind.WEIGHT and context.options.inline_weights
    return AddedRow(location, columns, PARTS, DType.BF16) if is_kept and location.dtype is DType.F32 else None


def _pays(core: NeuronCore, row: AddedRow, row_tiles: int) -> bool:
    """Whether the products take less time than the DMAs of a copy for each partition."""
    bank = core.psum_bank_bytes // 4
    pieces = -(-row.columns // bank)
    width = min(row.columns, bank)
    added_ns = row_tiles * pieces * instruction_ns(
        core, Engine.TENSOR, Opcode.MATMUL, width, row.dtype, columns=core.tensor_columns
    )  # fmt: skip
    size = row.columns * row.location.dtype.byte_count
    copy_ns = core.dma_packet_overhead_ns + size / core.dma_engine_bandwidth * 1e9
    return added_ns < (core.sbuf_partitions - row.parts) * copy_ns / core.dma_engines


def _without(selection: Selection, addition: Micro, product: Key, external: External) -> Selection:
    """The selection in which the product stands for the sum."""
    kept = [micro for micro in selection.micros if micro is not addition]
    for micro in kept:
        micro.reads = [product if key == addition.writes else key for key in micro.reads]
    read = {key for micro in kept for key in micro.reads}
    externals = selection.externals.items()
    return replace(
        selection,
        micros=kept,
        externals={key: item for key, item in externals if key in read or item is not external},
        stored={value: product if key == addition.writes else key for value, key in selection.stored.items()},
    )


class RowAddition:
    """Declares the steps that start the sums of a loop with a row."""

    def __init__(self, context: Context, loop: TileLoop, row: AddedRow) -> None:
        self._loop = loop
        self._row = row
        size = row.columns * row.dtype.byte_count
        self._slot = loop.slot("added row", size, row.dtype, partitions=row.parts, stationary=True)
        self._slot.tensor = row.location.tensor
        ones = context.core.tensor_columns * row.dtype.byte_count
        self._ones = loop.slot("ones", ones, row.dtype, partitions=row.parts, stationary=True)
        first = np.arange(loop.iterations) == 0
        transfer = Transfer(
            context.load_queue(row.location), Memory.HBM, Memory.SBUF, row.parts * size, size, row.parts,
            row.location.purpose, row.dtype, row.location.tensor,
        )  # fmt: skip
        loop.load(self._slot, transfer, active=first, after=row.location.tokens)
        loop.step(Engine.GPSIMD, Opcode.MEMSET, writes=(self._ones,), partitions=row.parts,
                  elements=context.core.tensor_columns, active=first)  # fmt: skip

    def start(
        self, sums: Sequence[Slot], rows: Ints, widths: Sequence[Ints], active: npt.NDArray[np.bool_]
    ) -> None:
        """The first product of each sum."""
        self._loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(self._ones,), partitions=self._row.parts,
                        columns=rows, active=active)  # fmt: skip
        for psum, width in zip(sums, widths):
            self._loop.step(
                Engine.TENSOR, Opcode.MATMUL, reads=(self._slot, self._ones), writes=(psum,),
                partitions=self._row.parts, columns=rows, elements=width, active=active & (width > 0),
                accumulates=True,
            )  # fmt: skip
