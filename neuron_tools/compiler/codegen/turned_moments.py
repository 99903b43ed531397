"""Mean and variance of rows on the Tensor engine, for loops that their Vector and Scalar engines hold up.

The tile is loaded turned, columns on partitions. With one 128-column block of it as stationary operand, the
same block and a column of ones moving past it add up to the rows' products with each other, whose diagonal
are the sums of squares, and to the rows' sums. The identity moving past it turns the block back into PSUM,
from where the Scalar engine normalises it. So statistics and normalisation cost the Vector engine next to
nothing, and the DMA engines a tenth more time for the load.
"""

from __future__ import annotations

import numpy as np

from neuron_tools.compiler.codegen.engines import instruction_ns
from neuron_tools.compiler.codegen.loop_state import LoopState
from neuron_tools.compiler.codegen.micro import Key, Micro, Selection
from neuron_tools.compiler.codegen.slot import Slot, Transfer
from neuron_tools.compiler.codegen.space import Space
from neuron_tools.compiler.codegen.tables import IDENTITY, SQUARE
from neuron_tools.compiler.passes.groups import Shape
from neuron_tools.frozen import frozen
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode

_AFFINE = frozenset({"add", "subtract", "multiply"})
_ROW_INSTRUCTIONS = {Engine.SCALAR: 4, Engine.VECTOR: 3}
"""Instructions between the products and the normalisation; each waits for the one before."""
PIECES = 2
"""Parts of the turned-back tile in PSUM at a time: one is filled while the other is read."""
NORMALISING_STAGE = 3
"""Load, products, statistics; then the tile is turned back and normalised in the same stage."""


@frozen
class TurnedRows:
    """The instructions of a tile body that the Tensor engine stands in for."""

    data: Key
    statistics: Micro
    aggregate: Micro
    normalise: Micro


def find_turned_rows(selection: Selection, space: Space, core: NeuronCore) -> TurnedRows | None:
    """Statistics and normalisation of an operand that nothing else reads; None if there are none."""
    found = [micro for micro in selection.micros if micro.opcode is Opcode.BN_STATS]
    whole = space.chunks == 1 and space.rows_per_partition == 1 and space.columns == space.run
    if len(found) != 1 or not whole or space.columns % core.tensor_rows or selection.partition_reductions:
        return None
    data = found[0].reads[0]
    external = selection.externals.get(data)
    readers = [micro for micro in selection.micros if data in micro.reads and micro is not found[0]]
    if external is None or external.form != "full" or not external.view.is_plain or len(readers) != 1:
        return None
    aggregate = next(micro for micro in selection.micros if found[0].writes in micro.reads)
    if data in selection.stored.values() or not _normalises(readers[0], selection, data):
        return None
    return TurnedRows(data, found[0], aggregate, readers[0])


def _normalises(micro: Micro, selection: Selection, data: Key) -> bool:
    """Whether an instruction is (data op row) op row, as one activation with scale and bias does it."""
    made = {other.writes: other for other in selection.micros}
    return (
        micro.opcode is Opcode.TENSOR_SCALAR
        and micro.reduces is None
        and set(micro.scalar_operations) <= _AFFINE
        and micro.reads[0] == data
        and all(key in made and made[key].shape is Shape.ROW for key in micro.reads[1:])
    )


def turned_load(core: NeuronCore, columns: int) -> dict[Engine, float]:
    """Time of each engine for statistics and normalisation of a tile, ns."""
    tensor = instruction_ns(core, Engine.TENSOR, Opcode.LDWEIGHTS, 0, DType.BF16, columns=core.tensor_columns)
    tensor += instruction_ns(core, Engine.TENSOR, Opcode.MATMUL, core.tensor_rows + 1, DType.BF16)
    piece = columns / _piece_count(core, columns)
    scalar = instruction_ns(core, Engine.SCALAR, Opcode.ACTIVATE, int(piece), DType.BF16, Memory.PSUM)
    row = instruction_ns(core, Engine.SCALAR, Opcode.ACTIVATE, 1)
    return {
        Engine.TENSOR: 2 * columns / core.tensor_rows * tensor,
        Engine.SCALAR: _piece_count(core, columns) * scalar + _ROW_INSTRUCTIONS[Engine.SCALAR] * row,
        Engine.VECTOR: _ROW_INSTRUCTIONS[Engine.VECTOR] * row,
    }


def _piece_count(core: NeuronCore, columns: int) -> int:
    """Pieces of a tile: each leaves room in PSUM for as much again, and for the products."""
    limit = (core.psum_bytes_per_partition // 4) // DType.BF16.byte_count
    return max(PIECES, -(-columns // limit))


class TurnedMoments(LoopState):
    """Declares the steps that take the place of `TurnedRows`."""

    def _turned_operand(self, turned: TurnedRows) -> None:
        """Load a tile with its columns on partitions."""
        external = self._selection.externals[turned.data]
        location = self._context.location(external.view.root)
        item = location.dtype.byte_count
        core = self._context.core
        blocks = self._space.columns // core.tensor_rows
        slot = self._loop.slot("turned", blocks * (core.sbuf_partitions + 1) * item, location.dtype)
        slot.tensor = location.tensor
        self._tile_queue = self._context.load_queue(location)
        self._tiles_run_ahead = location.waits_for_room_only
        transfer = Transfer(
            self._tile_queue, Memory.HBM, Memory.SBUF, self._tile_elements * item,
            self._space.columns * item, core.sbuf_partitions, location.purpose, location.dtype,
            location.tensor, transpose=True,
        )  # fmt: skip
        self._loop.load(slot, transfer, after=location.tokens)
        self._slots[turned.data] = slot
        self._ones = self._constant("ones", blocks, location.dtype)
        self._identity = self._constant("identity", core.tensor_columns, location.dtype)

    def _constant(self, name: str, elements: int, dtype: DType) -> Slot:
        slot = self._loop.slot(name, elements * dtype.byte_count, dtype, stationary=True)
        first = np.arange(self._space.iterations) == 0
        opcode = Opcode.IOTA if name == "identity" else Opcode.MEMSET
        self._loop.step(Engine.GPSIMD, opcode, writes=(slot,), elements=elements, active=first)
        return slot

    def _turned_statistics(self, turned: TurnedRows) -> None:
        """The rows' products and sums in PSUM, and from them mean and variance."""
        core, source = self._context.core, self._slots[turned.data]
        products = self._loop.slot("products", core.psum_bank_bytes, DType.F32, memory=Memory.PSUM)
        for _ in range(self._space.columns // core.tensor_rows):
            self._stationary(source)
            self._loop.step(
                Engine.TENSOR, Opcode.MATMUL, reads=(source, self._ones), writes=(products,),
                partitions=core.tensor_rows, columns=self._partitions, elements=self._partitions + 1,
                accumulates=True, flags=Flag.ACCUMULATE,
            )  # fmt: skip
        self._slots[turned.aggregate.writes] = self._moments(products)

    def _moments(self, products: Slot) -> Slot:
        """Mean and variance from the sums: E[x^2] - E[x]^2, shared by the engines that have time for it."""
        columns = self._context.core.tensor_columns
        squares = self._loop.slot("squares", 4 * columns, DType.F32)
        total, mean_square = (self._loop.slot("row result", 4, DType.F32) for _ in range(2))
        moments = self._loop.slot("row result", 8, DType.F32)
        self._row_step(Engine.SCALAR, Opcode.ACTIVATE, (products,), moments, 1, activation=IDENTITY)
        self._row_step(Engine.SCALAR, Opcode.ACTIVATE, (moments,), mean_square, 1, activation=SQUARE)
        self._row_step(Engine.VECTOR, Opcode.TENSOR_TENSOR, (products, self._identity), squares, columns,
                       flags=Flag.SECOND_OPERAND_PSUM)  # fmt: skip
        self._row_step(Engine.VECTOR, Opcode.TENSOR_REDUCE, (squares,), total, columns)
        self._row_step(Engine.VECTOR, Opcode.TENSOR_SCALAR, (total, mean_square), moments, 1)
        return moments

    def _row_step(
        self, engine: Engine, opcode: Opcode, reads: tuple[Slot, ...], written: Slot, elements: int,
        *, activation: str = "", flags: Flag = Flag.NONE,
    ) -> None:  # fmt: skip
        self._loop.step(
            engine, opcode, reads=reads, writes=(written,), partitions=self._partitions, elements=elements,
            activation=activation, flags=flags, stage=NORMALISING_STAGE - 1,
        )  # fmt: skip

    def _stationary(self, source: Slot, flags: Flag = Flag.NONE, stage: int | None = None) -> None:
        self._loop.step(
            Engine.TENSOR, Opcode.LDWEIGHTS, reads=(source,), partitions=self._context.core.tensor_rows,
            columns=self._partitions, flags=flags, stage=stage,
        )  # fmt: skip

    def _turned_normalise(self, turned: TurnedRows, result: Slot) -> None:
        """Turn the tile back piece by piece; one activation each scales it and adds the bias."""
        core, source = self._context.core, self._slots[turned.data]
        rows = tuple(self._slots[key] for key in turned.normalise.reads[1:])
        bias = self._loop.slot("row result", 4, DType.F32)
        self._loop.step(Engine.SCALAR, Opcode.ACTIVATE, activation=IDENTITY, reads=rows, writes=(bias,),
                        partitions=self._partitions, elements=1)  # fmt: skip
        count = _piece_count(core, self._space.columns)
        blocks = self._space.columns // core.tensor_rows
        per_piece = -(-blocks // count)
        banks = [
            self._loop.slot("turning", per_piece * core.tensor_rows * source.dtype.byte_count, source.dtype,
                            memory=Memory.PSUM)
            for _ in range(PIECES)
        ]  # fmt: skip
        for piece, first in enumerate(range(0, blocks, per_piece)):
            held = min(per_piece, blocks - first)
            bank = banks[piece % PIECES]
            for _ in range(held):
                self._stationary(source, Flag.TRANSPOSE, NORMALISING_STAGE)
                self._loop.step(
                    Engine.TENSOR, Opcode.TRANSPOSE, reads=(source, self._identity), writes=(bank,),
                    partitions=core.tensor_rows, columns=self._partitions, elements=core.tensor_rows,
                    flags=Flag.TRANSPOSE, stage=NORMALISING_STAGE,
                )  # fmt: skip
            self._loop.step(
                Engine.SCALAR, Opcode.ACTIVATE, activation=IDENTITY, reads=(bank, bias, *rows),
                writes=(result,), partitions=self._partitions, elements=held * core.tensor_rows,
                accumulates=piece > 0, stage=NORMALISING_STAGE,
            )  # fmt: skip
