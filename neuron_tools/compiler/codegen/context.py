"""What code generation shares: the builder, the memories, the queues, and where every value is."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from neuron_tools.compiler.allocate import Allocator, latest
from neuron_tools.compiler.codegen.location import Location
from neuron_tools.compiler.codegen.residents import Residency, Resident
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.compiler.codegen.types import memory_dtype
from neuron_tools.compiler.hlo import Module, Operation, TensorType
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.compiler.passes.groups import FusionPlan, Group
from neuron_tools.compiler.passes.in_place import final_values
from neuron_tools.compiler.resident_weights import ResidentWeights
from neuron_tools.frozen import frozen
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.records.program import (
    TILE_DTYPE,
    Engine,
    HloOperation,
    Memory,
    Queue,
    QueueKind,
    TensorKind,
    empty_table,
)
from neuron_tools.simulator.builder import ProgramBuilder

LOAD_QUEUES = 4
STORE_QUEUES = 4
"""Rings used in turn, so that one transfer's latency hides behind others."""


@frozen
class Emitters:
    """Code generators that stand above the context and that it or other generators call back.

    Attributes:
        plan: Emits all groups of a context's plan: the body of a loop, a branch.
        spill: Saves a value that is only in SBUF to HBM.
    """

    plan: Callable[[Context], None]
    spill: Callable[[Context, Resident], None]


class Context:
    """State of the generation of one Program."""

    def __init__(
        self,
        plan: FusionPlan,
        builder: ProgramBuilder,
        core: NeuronCore,
        options: CompilerOptions,
        emitters: Emitters,
        weights: ResidentWeights | None = None,
    ) -> None:
        self.weights = weights or ResidentWeights(core, 0)
        self.emitters = emitters
        self.options = options
        self.plan = plan
        self.module: Module = plan.module
        self.builder = builder
        self.core = core
        self.sbuf = Allocator(core.sbuf_bytes_per_partition)
        self.psum = Allocator(core.psum_bytes_per_partition, alignment=core.psum_bank_bytes)
        self.locations: dict[int, Location] = {}
        self.residency = Residency()
        self.loaded_tables: tuple[str, ...] = ()
        self._queue_engines: dict[int, Engine] = {}
        self._turn = {"load": 0, "ahead": 0, "store": 0}
        self._names: dict[str, int] = {}
        self._results = frozenset(self.module.results)
        self._final = final_values(plan.in_place)

    def nested(self, plan: FusionPlan, arguments: Mapping[int, Location]) -> Context:
        """A context for a region: the same program and memories, its own values."""
        inner = copy.copy(self)
        inner.plan, inner.module = plan, plan.module
        inner.locations = {**self.locations, **arguments}
        inner._final = final_values(plan.in_place)
        inner._results = frozenset()
        return inner

    # Memories

    def allocator(self, memory: Memory) -> Allocator:
        """The allocator of SBUF or PSUM."""
        return self.psum if memory is Memory.PSUM else self.sbuf

    def tiles(self, slot: Slot) -> int:
        """Add a tile row per buffer of a slot; returns the first row."""
        rows = empty_table(TILE_DTYPE, len(slot.blocks))
        rows["memory"] = slot.memory
        rows["address"] = [block.address for block in slot.blocks]
        rows["bytes_per_partition"] = slot.bytes_per_partition
        rows["partitions"] = slot.partitions
        rows["tensor"] = slot.tensor
        rows["first_use"] = rows["last_use"] = -1
        return self.builder.tiles(rows)

    # Queues

    def queue_engine(self, queue: int) -> Engine:
        """The engine that triggers a queue's transfers."""
        return self._queue_engines[queue]

    def load_queue(self, source: Location | None = None, *, engine: Engine = Engine.SYNC) -> int:
        """The next ring for loads; what was in HBM before the program began has rings of its own.

        Those loads wait for room in SBUF only, so they can run ahead of loads that wait for results.
        """
        if source is not None and source.waits_for_room_only:
            return self._next_queue("ahead", LOAD_QUEUES, engine, QueueKind.INPUT)
        return self._next_queue("load", LOAD_QUEUES, engine, QueueKind.INPUT)

    def store_queue(self, *, engine: Engine = Engine.GPSIMD) -> int:
        """The next ring for stores; another engine than for loads, so that neither holds the other."""
        return self._next_queue("store", STORE_QUEUES, engine, QueueKind.OUTPUT)

    def software_queue(self) -> int:
        """The ring for transfers whose descriptors GpSimd makes while running (gather, scatter)."""
        return self._queue("qGpSimdDynamic", Engine.GPSIMD, QueueKind.SOFTWARE_DYNAMIC)

    def queue(self, queue: Queue) -> int:
        """A ring that a ready Program brings along."""
        return self._queue(queue.name, queue.engine, queue.kind)

    def collective_queue(self) -> int:
        """The stream of collectives."""
        return self._queue("qSyncCollective", Engine.SYNC, QueueKind.COLLECTIVE)

    def barrier_queue(self) -> int:
        """The ring by which a physical core tells the other one that it has come to a barrier."""
        return self._queue("qGpSimdBarrier", Engine.GPSIMD, QueueKind.INSTRUCTION)

    def _next_queue(self, use: str, count: int, engine: Engine, kind: QueueKind) -> int:
        turn = self._turn[use]
        self._turn[use] = (turn + 1) % count
        return self._queue(f"q{engine.title}{use.capitalize()}{turn}", engine, kind)

    def _queue(self, name: str, engine: Engine, kind: QueueKind) -> int:
        queue = self.builder.queue(name, engine, kind)
        self._queue_engines[queue] = engine
        return queue

    # Values

    def type_of(self, value: int) -> TensorType:
        """Type of a value."""
        return self.module.values[value].type

    def inherit(self, outer: Context) -> None:
        """Take over what belongs to the whole program: queues' engines and the module's results."""
        self._queue_engines = outer._queue_engines
        self._results = outer._results

    def forget_results(self) -> None:
        """Whatever is made from here on is no output of the program."""
        self._results = frozenset()

    def knows(self, value: int) -> bool:
        """Whether a value has a place already."""
        return value in self.locations

    def location(self, value: int) -> Location:
        """Where a value can be loaded from; constants get a tensor on first use.

        A value that is only in SBUF is spilled: its reader does not take it from there.
        """
        resident = self.residency.residents.get(value)
        if resident is not None:
            self.emitters.spill(self, resident)
        known = self.locations.get(value)
        if known is None:
            view = self.plan.views.of(value)
            if view.is_plain and view.root != value:
                return self.location(view.root)
            known = self.locations[value] = self.define(value, TensorKind.CONSTANT)
        return known

    def tensor_of(self, value: int) -> int:
        """The tensor in HBM that a value is in already, or is a view of; -1 where there is none."""
        known = self.locations.get(value) or self.locations.get(self.plan.views.of(value).root)
        return known.tensor if known is not None else -1

    def define(self, value: int, kind: TensorKind | None = None, name: str = "") -> Location:
        """Give a value a tensor in HBM."""
        type_ = self.type_of(value)
        if kind is None:
            kind = self.kind_of(value)
        label = name or self.module.values[value].name or f"{kind.name.lower()}.{value}"
        tensor = self.builder.tensor(label, kind, memory_dtype(type_.dtype), type_.shape)
        location = self.locations[value] = Location(tensor, type_, kind)
        return location

    def take_over(self, value: int, updated: int) -> Location:
        """Give a value the memory of another one, whose content nobody reads any more."""
        place = self.location(updated)
        self.locations[value] = replace(place, type=self.type_of(value), kind=self.kind_of(value))
        return self.locations[value]

    def scratch(self, name: str, type_: TensorType) -> Location:
        """A tensor in HBM that only this program sees."""
        tensor = self.builder.tensor(name, TensorKind.INTERMEDIATE, memory_dtype(type_.dtype), type_.shape)
        return Location(tensor, type_, TensorKind.INTERMEDIATE)

    def kind_of(self, value: int) -> TensorKind:
        """What a value made here is to the model: an output where a result is the value or a view of it.

        A value that is updated in place is what the last value in its memory is.
        """
        views, value = self.plan.views, self._final.get(value, value)
        if value in self._results or any(
            views.of(result).is_same and views.of(result).root == value for result in self._results
        ):
            return TensorKind.OUTPUT
        return TensorKind.INTERMEDIATE

    def complete(self, value: int, tokens: Mapping[int, int]) -> None:
        """Record what must be complete before a value in HBM may be read."""
        location = self.locations[value]
        location.tokens = latest(location.tokens, tokens)

    # HLO rows

    def hlo(
        self, group: Group, *, opcode: str = "", model_flops: int = 0, weights: Iterable[float] = ()
    ) -> int:
        """Add the HLO row of a group; framework shares follow `weights` (one per operation)."""
        first = group.operations[0]
        opcode = opcode or ("fusion" if len(group.operations) > 1 else first.opcode)
        shape = str(self.type_of(first.results[0])) if first.results else ""
        if group.outputs:
            shape = str(self.type_of(group.outputs[-1]))
        rows, shares = framework_shares(group.operations, list(weights))
        name = self.unique_name(opcode)
        return self.builder.hlo(HloOperation(name, opcode, rows, shares, model_flops, shape))

    def spill_row(self, value: int) -> int:
        """The HLO row of saving a value: it belongs to what made the value."""
        maker = self.plan.made_by.get(value)
        rows, shares = framework_shares([maker] if maker is not None else [], [])
        shape = str(self.type_of(value))
        return self.builder.hlo(HloOperation(self.unique_name("spill"), "spill", rows, shares, 0, shape))

    def unique_name(self, opcode: str, prefix: str = "") -> str:
        """A name that no other operation of the program has, e.g. "fusion.12"."""
        number = self._names.get(opcode, 0)
        self._names[opcode] = number + 1
        return f"{prefix}{opcode}.{number}"


def framework_shares(
    operations: Iterable[Operation], weights: list[float]
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Framework rows of operations and each row's part of their work, largest first; the parts sum to 1.

    `weights` is the work per operation (any unit); an operation of several rows splits its own evenly.
    """
    work: dict[int, float] = {}
    for index, operation in enumerate(operations):
        weight = max(weights[index] if index < len(weights) else 1.0, 1e-9)
        for row in operation.framework:
            work[row] = work.get(row, 0.0) + weight / len(operation.framework)
    if not work:
        return (), ()
    rows = sorted(work, key=lambda row: (-work[row], row))
    shares = np.array([work[row] for row in rows])
    return tuple(rows), tuple(float(share) for share in shares / shares.sum())
