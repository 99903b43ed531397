"""One pass over the device's spans that gathers every busy time the derived tables need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.profile.derive.island_store import IntervalUnion, IslandStore, IslandStream
from neuron_tools.profile.store.recorded import Numbering, RecordedTables, TextCodes, integers

DMA_ENGINE, CC_ENGINE, CC_CORES_ENGINE = "dma", "cc", "cc_cores"
STATIC, SOFTWARE_DYNAMIC, HARDWARE_DYNAMIC = "static", "software_dynamic", "hardware_dynamic"


class EngineKey(NamedTuple):
    """An engine of a core of a process; the engine in lower case, or "dma", "cc", "cc_cores"."""

    process_idx: int
    pcore_idx: int
    engine: str


@dataclass
class BusyTime:
    """Islands of activity. Close it, or use it in a `with` statement.

    Attributes:
        store: Keeps the islands.
        engine_keys: What the groups of `engines` stand for.
        opcodes: Group = number of an (engine, opcode) in `opcode_keys`.
        layers: Group = code of `layer_names`; instructions and DMA transfers.
        given: Islands of engines whose activity was recorded: they count, not those of `engines`.
        dma_kinds: Group = code of `dma_kind_names`: static, software_dynamic, hardware_dynamic.
    """

    store: IslandStore
    engine_keys: Numbering[EngineKey] = field(default_factory=Numbering)
    opcode_keys: Numbering[tuple[str, str]] = field(default_factory=Numbering)
    layer_names: TextCodes = field(default_factory=TextCodes)
    dma_kind_names: TextCodes = field(default_factory=TextCodes)
    given: dict[EngineKey, IslandStream] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.engines, self.opcodes, self.layers, self.dma_kinds = (
            IntervalUnion(self.store) for _ in range(4)
        )

    def __enter__(self) -> BusyTime:
        return self

    def __exit__(self, *error: object) -> None:
        self.store.close()

    def by_engine(self) -> dict[EngineKey, IslandStream]:
        """Islands of each engine of each core, in order of process, core and engine; some of no length."""
        islands = self.engines.by_group()
        named = {self.engine_keys.keys[group]: found for group, found in islands.items()} | self.given
        return {key: named[key] for key in sorted(named)}

    def engine_union(self, *names: str) -> IslandStream:
        """Islands of the named engines over all cores together."""
        return IslandStream.joined(
            islands for key, islands in self.by_engine().items() if key.engine in names
        )

    def total_union(self) -> IslandStream:
        """Islands of any activity on any core."""
        return IslandStream.joined(self.by_engine().values())


def read_busy_time(recorded: RecordedTables, *, is_active_time_given: bool = False) -> BusyTime:
    """Read all device spans once; with `is_active_time_given` also the activity that ActiveTime tells of.

    Raises:
        NoSpaceError: The disk is full.
    """
    busy = BusyTime(IslandStore(recorded.spill_folder))
    try:
        if is_active_time_given:
            busy.given = _given_activity(recorded, busy.store)
        _read_instructions(recorded, busy)
        _read_transfers(recorded, busy)
        _read_collectives(recorded, busy)
    except BaseException:
        busy.store.close()
        raise
    return busy


def _given_activity(recorded: RecordedTables, store: IslandStore) -> dict[EngineKey, IslandStream]:
    """Instructions of another tool's trace may contain their waiting: what it calls active is taken from
    it."""
    given, engines = BusyTime(store), TextCodes()
    for batch in recorded.scan("ActiveTime", ("start_ts", "end_ts", "engine", "process_idx", "pcore_idx")):
        groups = _engine_groups(given, batch, engines.encode(batch["engine"]), engines.texts)
        given.engines.add(groups, integers(batch["start_ts"]), integers(batch["end_ts"]))
    return given.by_engine()


def _read_instructions(recorded: RecordedTables, busy: BusyTime) -> None:
    engines, opcodes = TextCodes(), TextCodes()
    columns = ("start_ts", "end_ts", "engine", "opcode", "layer", "process_idx", "pcore_idx")
    for batch in recorded.scan("Instruction", columns):
        start, end = integers(batch["start_ts"]), integers(batch["end_ts"])
        engine, opcode = engines.encode(batch["engine"]), opcodes.encode(batch["opcode"])
        busy.engines.add(_engine_groups(busy, batch, engine, engines.texts), start, end)
        pair = engine * len(opcodes.texts) + opcode
        name_pair = partial(_opcode_key, engines.texts, opcodes.texts)
        busy.opcodes.add(busy.opcode_keys.encode(pair, name_pair), start, end)
        busy.layers.add(busy.layer_names.encode(batch["layer"]), start, end)


def _opcode_key(engines: Sequence[str], opcodes: Sequence[str], pair: int) -> tuple[str, str]:
    engine, opcode = divmod(pair, len(opcodes))
    return engines[engine], opcodes[opcode]


def _engine_groups(busy: BusyTime, batch: Mapping[str, pa.Array], engine: Ints, texts: Sequence[str]) -> Ints:
    """Number of each row's engine of its core of its process."""
    process = integers(batch["process_idx"])
    core = integers(batch["pcore_idx"]) if "pcore_idx" in batch else np.zeros_like(process)
    cores = int(core.max(initial=0)) + 1
    packed = (process * cores + core) * len(texts) + engine

    def name(number: int) -> EngineKey:
        place, code = divmod(number, len(texts))
        return EngineKey(*divmod(place, cores), texts[code].lower())

    return busy.engine_keys.encode(packed, name)


def _read_transfers(recorded: RecordedTables, busy: BusyTime) -> None:
    """DMA activity: of single packets where the profile has them, else of whole transfers."""
    table = "DmaPacket" if recorded.row_count("DmaPacket") else "DmaPacketAggregated"
    columns = ("start_ts", "end_ts", "queue_type", "process_idx", "pcore_idx")
    for batch in recorded.scan(table, columns):
        start, end = integers(batch["start_ts"]), integers(batch["end_ts"])
        busy.engines.add(_engine_groups(busy, batch, np.zeros_like(start), [DMA_ENGINE]), start, end)
        busy.dma_kinds.add(_dma_kind(busy.dma_kind_names, batch["queue_type"]), start, end)
    for batch in recorded.scan("DmaPacketAggregated", ("start_ts", "end_ts", "layer")):
        layer = busy.layer_names.encode(batch["layer"])
        busy.layers.add(layer, integers(batch["start_ts"]), integers(batch["end_ts"]))


def _dma_kind(names: TextCodes, queue_type: pa.Array) -> Ints:
    kinds = TextCodes()
    codes = kinds.encode(queue_type)
    of_text = [
        names.number(text if text in (SOFTWARE_DYNAMIC, HARDWARE_DYNAMIC) else STATIC) for text in kinds.texts
    ]
    return np.array(of_text, np.int64)[codes]


def _read_collectives(recorded: RecordedTables, busy: BusyTime) -> None:
    for table, name in (("CcOp", CC_ENGINE), ("CcInstruction", CC_CORES_ENGINE)):
        for batch in recorded.scan(table, ("start_ts", "end_ts", "process_idx")):
            start, end = integers(batch["start_ts"]), integers(batch["end_ts"])
            busy.engines.add(_engine_groups(busy, batch, np.zeros_like(start), [name]), start, end)
