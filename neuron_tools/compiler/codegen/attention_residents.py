"""Attention on heads that are columns of tokens in SBUF.

Queries and keys are turned there, values are used as they lie, and the result stays the same way
where the product behind it reads tokens.
"""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.compiler.allocate import latest
from neuron_tools.compiler.codegen.attention_parts import AttentionParts
from neuron_tools.compiler.codegen.operands import Operand
from neuron_tools.compiler.codegen.residency import may_stay, settle
from neuron_tools.compiler.codegen.residents import Resident
from neuron_tools.compiler.codegen.row_order import Heads, attention_operands, heads_result
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.compiler.passes.attention import AttentionBlock
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.records.program import DType


class AttentionResidents(AttentionParts):
    """Finds what of an attention block is in SBUF, and declares the steps that use it there."""

    _group: Group
    _block: AttentionBlock
    _used: list[tuple[Resident, Slot]]

    def _in_sbuf(self, operand: Operand) -> tuple[Resident, Heads] | None:
        """Where an operand is in SBUF. Turning takes a PSUM bank, which wider chunks of scores need."""
        heads = attention_operands(self._context, self._group).get(operand.value)
        if heads is None or self._chunk > self._bank:
            return None
        found = self._context.residency.find_order(operand.root, heads.order())
        return None if found is None else (found, heads)

    def _tile_of(self, found: tuple[Resident, Heads], head: Ints, first: Ints | int, tile: int) -> Slot:
        """A tile of tokens of the sequence that a head belongs to."""
        resident, heads = found
        place = head // heads.heads * -(-heads.rows // self._tile) + first + tile
        slot = resident.read(np.minimum(place, len(resident.tiles) - 1))
        self._loop.given(slot)
        self._used.append((resident, slot))
        return slot

    def _values_in_sbuf(self, found: tuple[Resident, Heads]) -> list[Slot]:
        head = self._at.head // self._shapes.shared
        return [self._tile_of(found, head, 0, tile) for tile in range(-(-self._shapes.columns // self._tile))]

    def _result_heads(self, value: int) -> Heads | None:
        """The heads that the result is of tokens, where it stays in SBUF."""
        stay = self._context.residency.stays.get(value)
        if stay is None:
            return None
        heads = heads_result(stay.order, self._shapes.rows, self._shapes.width)
        item = self._context.locations[value].dtype.byte_count
        tiles = -(-stay.order.row_count // self._tile)
        if heads is None or not may_stay(self._context, value, tiles * stay.order.column_count * item):
            return None
        return heads

    def _resident_result(self, value: int, heads: Heads, dtype: DType) -> Slot:
        place = self._at.head // heads.heads * self._shapes.row_tiles(self._tile) + self._at.row
        size = heads.heads * heads.columns * dtype.byte_count
        return self._loop.slot("resident", size, dtype, version=place, keep=True, whole=True)

    def _settle_result(self, value: int, slot: Slot) -> None:
        settle(self._context, value, self._loop, [(slot, np.arange(int(slot.version.max()) + 1))])

    def _note_uses(self) -> None:
        for resident, slot in self._used:
            resident.tokens = latest(resident.tokens, self._loop.last_uses(slot))
