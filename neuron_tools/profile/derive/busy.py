"""One pass over the device's spans that gathers every busy time the derived tables need."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from neuron_tools.profile.derive.intervals import Intervals, IntervalUnion, ungrouped, union
from neuron_tools.profile.recorded import Ints, RecordedTables, TextCodes, integers

PROCESS_SHIFT, CORE_SHIFT = 44, 28  # a group number: process, core, text code
CODE_MASK = (1 << CORE_SHIFT) - 1
CORE_MASK = (1 << PROCESS_SHIFT - CORE_SHIFT) - 1
DMA_ENGINE, CC_ENGINE, CC_CORES_ENGINE = "dma", "cc", "cc_cores"
STATIC, SOFTWARE_DYNAMIC, HARDWARE_DYNAMIC = "static", "software_dynamic", "hardware_dynamic"


@dataclass
class BusyTime:
    """Islands of activity.

    Attributes:
        engines: Groups of `core_group` with codes of `engine_names` (lower case; "dma", "cc", "cc_cores").
        opcodes: Group = engine code << 20 | opcode code.
        layers: Group = code of `layer_names`; instructions and DMA transfers.
        dma_kinds: Group = code of `dma_kind_names`: static, software_dynamic, hardware_dynamic.
    """

    engine_names: TextCodes = field(default_factory=TextCodes)
    opcode_names: TextCodes = field(default_factory=TextCodes)
    layer_names: TextCodes = field(default_factory=TextCodes)
    dma_kind_names: TextCodes = field(default_factory=TextCodes)
    engines: IntervalUnion = field(default_factory=IntervalUnion)
    opcodes: IntervalUnion = field(default_factory=IntervalUnion)
    layers: IntervalUnion = field(default_factory=IntervalUnion)
    dma_kinds: IntervalUnion = field(default_factory=IntervalUnion)

    def engine_union(self, *names: str) -> Intervals:
        """Islands of the named engines over all cores, as one group."""
        codes = [self.engine_names.number(name) for name in names]
        islands = self.engines.islands()
        return union(ungrouped(islands.take(np.isin(islands.group & CODE_MASK, codes))))

    def total_union(self) -> Intervals:
        """Islands of any activity on any core, as one group."""
        return union(ungrouped(self.engines.islands()))


def core_group(process: Ints, core: Ints, code: Ints) -> Ints:
    """One number for process, core and text code."""
    return (process << PROCESS_SHIFT) | (core << CORE_SHIFT) | code


def read_busy_time(recorded: RecordedTables) -> BusyTime:
    """Read all device spans once."""
    busy = BusyTime()
    _read_instructions(recorded, busy)
    _read_transfers(recorded, busy)
    _read_collectives(recorded, busy)
    return busy


def _read_instructions(recorded: RecordedTables, busy: BusyTime) -> None:
    titles = TextCodes()
    columns = ("start_ts", "end_ts", "engine", "opcode", "layer", "process_idx", "pcore_idx")
    for batch in recorded.scan("Instruction", columns):
        start, end = integers(batch["start_ts"]), integers(batch["end_ts"])
        title = titles.encode(batch["engine"])
        lower = np.array([busy.engine_names.number(text.lower()) for text in titles.texts], np.int64)
        engine = lower[title]
        process, core = integers(batch["process_idx"]), integers(batch["pcore_idx"])
        busy.engines.add(core_group(process, core, engine), start, end)
        busy.opcodes.add(engine << 20 | busy.opcode_names.encode(batch["opcode"]), start, end)
        busy.layers.add(busy.layer_names.encode(batch["layer"]), start, end)


def _read_transfers(recorded: RecordedTables, busy: BusyTime) -> None:
    """DMA activity: of single packets where the profile has them, else of whole transfers."""
    table = "DmaPacket" if recorded.row_count("DmaPacket") else "DmaPacketAggregated"
    code = busy.engine_names.number(DMA_ENGINE)
    columns = ("start_ts", "end_ts", "queue_type", "process_idx", "pcore_idx")
    for batch in recorded.scan(table, columns):
        start, end = integers(batch["start_ts"]), integers(batch["end_ts"])
        process, core = integers(batch["process_idx"]), integers(batch["pcore_idx"])
        busy.engines.add(core_group(process, core, np.full(len(start), code)), start, end)
        busy.dma_kinds.add(_dma_kind(busy.dma_kind_names, batch["queue_type"]), start, end)
    for batch in recorded.scan("DmaPacketAggregated", ("start_ts", "end_ts", "layer")):
        layer = busy.layer_names.encode(batch["layer"])
        busy.layers.add(layer, integers(batch["start_ts"]), integers(batch["end_ts"]))


def _dma_kind(names: TextCodes, queue_type: object) -> Ints:
    kinds = TextCodes()
    codes = kinds.encode(queue_type)
    of_text = [
        names.number(text if text in (SOFTWARE_DYNAMIC, HARDWARE_DYNAMIC) else STATIC) for text in kinds.texts
    ]
    return np.array(of_text, np.int64)[codes]


def _read_collectives(recorded: RecordedTables, busy: BusyTime) -> None:
    for table, name in (("CcOp", CC_ENGINE), ("CcInstruction", CC_CORES_ENGINE)):
        for batch in recorded.scan(table, ("start_ts", "end_ts", "process_idx")):
            process = integers(batch["process_idx"])
            code = np.full(len(process), busy.engine_names.number(name))
            group = core_group(process, np.zeros(len(process), np.int64), code)
            busy.engines.add(group, integers(batch["start_ts"]), integers(batch["end_ts"]))
