"""Heads of an attention block that are turned on chip: by the Tensor engine, through PSUM.

Rows of heads that lie beside each other, and are short, are loaded together. Elements of four bytes are
turned on chip in any case: DMA does it for two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuron_tools.arrays import Bools, Ints
from neuron_tools.compiler.codegen.attention_parts import AttentionParts
from neuron_tools.compiler.codegen.attention_tiles import heads_together
from neuron_tools.compiler.codegen.operands import Operand
from neuron_tools.compiler.codegen.slot import Slot, Transfer
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode


class AttentionHeads(AttentionParts):
    """Declares the steps that load rows of heads and turn them."""

    _value: Operand
    _turns_on_chip = False

    @property
    def _collects_statistics(self) -> bool:
        """Whether statistics of many tiles are stored at once: they are turned, too, and PSUM has room."""
        return self._chunk <= self._bank and not self._turns_on_chip

    def _values_together(self) -> int:
        """Heads whose values are loaded together, where their rows are read as they lie."""
        if self._value.method != "natural" or self._value.turned:
            return 1
        tiles = -(-self._shapes.columns // self._tile)
        return heads_together(self._context, self._value.value, self._shapes.width, tiles)

    def _rows_of_heads(
        self, operand: Operand, head: Ints, first: Ints | int, count: Ints
    ) -> Callable[[int], Slot]:
        """Loads tiles of rows on partitions; several heads' at once where all their rows are."""
        depth, tiles = self._shapes.depth, -(-int(count.max()) // self._tile)
        is_whole = not np.any(first)
        together = heads_together(self._context, operand.value, depth, tiles) if is_whole else 1
        content = head // together * (1 + int(np.max(first))) + first
        version = np.cumsum(np.diff(content, prepend=content[:1]) != 0)
        location, item = self._context.location(operand.root), operand.dtype.byte_count
        queue = self._context.load_queue(location)
        follow = self._context.plan.views.of(operand.value).run_elements >= depth * self._tile
        run = depth * self._tile if follow else min(depth, operand.run) * together

        def load(tile: int) -> Slot:
            slot = self._loop.slot(
                "rows of heads", depth * together * item, operand.dtype, version=version, extra_buffers=1
            )
            slot.tensor = location.tensor
            rows = np.clip(count - tile * self._tile, 0, self._tile)
            transfer = Transfer(
                queue, Memory.HBM, Memory.SBUF, rows * depth * together * item,
                run * item, rows, location.purpose, location.dtype, location.tensor, strided=not follow,
            )  # fmt: skip
            active = self._loop.first_of(version) & (rows > 0)
            self._loop.load(slot, transfer, active=active, after=location.tokens)
            return slot

        slots = [load(tile) for tile in range(tiles)]
        return lambda tile: slots[tile]

    def _collected_statistics(self, dtype: DType) -> Slot:
        """A column for each tile of queries; as many of them as there are partitions are stored at once."""
        return self._loop.slot(
            "statistics of tiles", self._tile * dtype.byte_count, dtype, version=self._at.tile // self._tile
        )

    def _turned_statistics(self, slot: Slot) -> tuple[Slot, Ints, Bools]:
        """Collected columns as rows, how many, and when: one of a tile's numbers then follow one another."""
        loop, at = self._loop, self._at
        number = at.tile % self._tile + 1
        last = at.last & ((number == self._tile) | (at.tile == at.tile.max()))
        psum = loop.slot(
            "turning statistics", self._tile * slot.dtype.byte_count, slot.dtype, memory=Memory.PSUM,
            version=slot.version,
        )  # fmt: skip
        turned = loop.slot(
            "turned statistics", self._tile * slot.dtype.byte_count, slot.dtype, version=slot.version
        )
        turning: dict[str, Any] = {"columns": number, "active": last, "flags": Flag.TRANSPOSE}
        loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(slot,), **turning)
        loop.step(
            Engine.TENSOR, Opcode.TRANSPOSE, reads=(slot,), writes=(psum,), elements=self._tile,
            output_dtype=slot.dtype, **turning,
        )  # fmt: skip
        loop.step(Engine.VECTOR, Opcode.TENSOR_COPY, reads=(psum,), writes=(turned,), partitions=number,
                  elements=self._tile, active=last)  # fmt: skip
        return turned, number, last

    def _turned(self, slot: Slot, rows_of: Callable[[int], Slot], count: Ints) -> None:
        """Fill a slot with the columns of `count` rows, turned; as many tiles at once as a bank holds."""
        depth, tiles = self._shapes.depth, -(-int(count.max()) // self._tile)
        together = self._context.core.psum_bank_bytes // (self._tile * slot.dtype.byte_count)
        self._turns_on_chip = True
        for start in range(0, depth, self._tile):
            height = min(self._tile, depth - start)
            size = min(tiles, together) * self._tile * slot.dtype.byte_count
            psum = self._loop.slot(
                "turning heads", size, slot.dtype, memory=Memory.PSUM, version=slot.version
            )
            for tile in range(0, tiles, together):
                raw = [rows_of(number) for number in range(tile, min(tiles, tile + together))]
                self._turn_tiles(slot, psum, raw, count - tile * self._tile, height)

    def _turn_tiles(self, slot: Slot, psum: Slot, raw: list[Slot], count: Ints, height: int) -> None:
        loop, active = self._loop, self._loop.first_of(slot.version)
        for tile, source in enumerate(raw):
            rows = np.clip(count - tile * self._tile, 0, self._tile)
            live = active & (rows > 0)
            loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(source,), partitions=rows, columns=height,
                      active=live, flags=Flag.TRANSPOSE, stage=0)  # fmt: skip
            loop.step(Engine.TENSOR, Opcode.TRANSPOSE, reads=(source,), writes=(psum,), partitions=rows,
                      columns=height, elements=rows, active=live, flags=Flag.TRANSPOSE, stage=0,
                      output_dtype=slot.dtype, accumulates=tile > 0)  # fmt: skip
        elements = np.clip(count, 0, len(raw) * self._tile)
        loop.step(Engine.VECTOR, Opcode.TENSOR_COPY, reads=(psum,), writes=(slot,), partitions=height,
                  elements=elements, active=active & (elements > 0), accumulates=True, stage=0)  # fmt: skip
