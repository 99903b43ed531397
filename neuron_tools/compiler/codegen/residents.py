"""Results that are in SBUF between the groups that make and read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from neuron_tools.arrays import Ints
from neuron_tools.compiler.allocate import Block
from neuron_tools.compiler.codegen.location import Location
from neuron_tools.compiler.codegen.row_order import RowOrder, plain_order
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.frozen import frozen
from neuron_tools.records.program import Memory


@frozen
class Stay:
    """A result that should stay: until which group, by its position, and whether HBM needs it as well."""

    last_reader: int
    elsewhere: bool
    order: RowOrder


@dataclass(eq=False)
class Resident:
    """A result in SBUF.

    Attributes:
        tiles: (row tiles,) rows of the tile table.
        written: (steps, row tiles) tokens of each step's last write.
        tokens: Stream -> token of its last use so far.
        stored: It is in HBM as well.
    """

    value: int
    place: Location
    slot: Slot
    row_count: int
    columns: int
    tiles: Ints
    written: Ints
    blocks: Sequence[Block]
    tokens: dict[int, int]
    stored: bool
    order: RowOrder

    def read(self, version: Ints) -> Slot:
        """A slot of a reader's loop: `version` (iterations,) is the row tile that each iteration reads."""
        return Slot(
            "resident", Memory.SBUF, self.slot.bytes_per_partition, self.slot.partitions, self.slot.dtype,
            version, tensor=self.place.tensor, buffers=1, given=self.written, tiles=self.tiles,
        )  # fmt: skip


@dataclass
class Residency:
    """What is in SBUF now, and what is planned to stay.

    Attributes:
        stays: Value -> its stay, in the run of groups that is being generated.
        residents: Value -> where it is.
    """

    stays: Mapping[int, Stay] = field(default_factory=dict)
    residents: dict[int, Resident] = field(default_factory=dict)

    def bytes_per_partition(self) -> int:
        """SBUF that residents take."""
        return sum(block.size for item in self.residents.values() for block in item.blocks)

    def find(self, value: int, row_count: int, columns: int) -> Resident | None:
        """A resident of this shape."""
        return self.find_order(value, plain_order(row_count, columns))

    def find_order(self, value: int, order: RowOrder | None) -> Resident | None:
        """A resident whose rows and columns are these."""
        found = self.residents.get(value)
        return found if found is not None and found.order == order else None
