"""The capture log: fixed-size records that the device appends while a program runs.

One file per process (`events.bin`), written by the device's C++ core (`neuron_tools/device/csrc`), read
here by anything that turns a capture into a profile. Appended at least every 250 ms, so a killed process
loses no more than that. Definitions that records refer to by number (stacks, modules, executables, names)
stand in `definitions.jsonl` beside it, one JSON object a line, always written before the first record
that refers to them.

Host times are virtual (docs: time): wall time less the time that computing values, simulating and
writing took here; a synchronisation moves the host to the device's finish. Device times come from the
simulator. Both count nanoseconds from the start of the capture.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from neuron_tools.frozen import frozen

NOT_COMPILED = "not compiled"
"""Category of the warnings of graphs that take no device time because the compiler refused them."""

EVENTS_FILE = "events.bin"
LOG_VERSION = 2
"""Raised whenever records change: those of another version are not read."""
COLLECTIVE_NUMBER_BITS = 40
"""`sequence` of a COLLECTIVE: its number in its group, and from this bit on the rank that came last."""


class RecordKind(IntEnum):
    """What a record tells. Device times are 0 where the device is not involved."""

    OPERATION = 1  # an eager operation: one execution of `executable`
    GRAPH = 2  # an execution of a compiled graph (`executable`)
    COPY_TO_DEVICE = 3  # host -> device, `bytes`; `address` is a `Padding`, packed
    COPY_TO_HOST = 4  # device -> host, `bytes`
    SYNCHRONIZE = 5  # host waits for the device
    ALLOCATE = 6  # device memory, `bytes` at `address`; a log begins with what was held before it
    FREE = 7
    RANGE = 8  # a closed host range (record_function, optimizer step), `name`; host times only
    VIEW = 9  # an operation without device time
    STEP = 10  # a profiler step marker
    MODULE_CALL = 11  # one call of an nn.Module, `module`; host times only
    COLLECTIVE = 12  # this rank's part: `executable` is its description, `address` when the rank was ready
    FUSED_OPERATION = 13  # an eager operation that ran in the next FUSED, whose device times it has
    FUSED = 14  # one execution of the `address` FUSED_OPERATIONs before it


@frozen
class Padding:
    """How far the sequences of a batch were padded when it was copied to the device.

    Attributes:
        rows: Sequences of the batch.
        length: Positions of each, padding included.
        longest: Positions that the longest one needs.
        mean: Positions that they need on average, rounded up.
    """

    rows: int
    length: int
    longest: int
    mean: int

    @classmethod
    def unpacked(cls, packed: int) -> Padding | None:
        """What a copy's `address` says; None where nothing is padded."""
        if packed <= 0:
            return None
        return cls(*(packed >> shift & 0xFFFF for shift in (48, 32, 16, 0)))

    def packed(self) -> int:
        """16 bits each, from the highest."""
        return self.rows << 48 | self.length << 32 | self.longest << 16 | self.mean


RECORD_DTYPE = np.dtype(
    [
        ("kind", "u2"),
        ("device", "u2"),  # NeuronCore index inside the process
        ("stream", "u2"),
        ("flags", "u2"),  # 1 = in an optimizer step, 2 = no native lowering, 16 = in a backward pass
        ("thread", "u4"),  # ordinal of the host thread, in order of first appearance
        ("executable", "u4"),  # 0 = none
        ("stack", "u4"),  # 0 = none
        ("module", "u4"),  # 0 = none
        ("name", "u4"),  # operation or range name; 0 = none
        ("forward_thread", "u4"),  # `thread` of the record whose `sequence` is forward_sequence
        ("host_start_ns", "i8"),
        ("host_end_ns", "i8"),
        ("device_start_ns", "i8"),
        ("device_end_ns", "i8"),
        ("sequence", "i8"),  # autograd sequence number of the node this operation made; -1 = none
        ("forward_sequence", "i8"),  # inside backward: the forward operation's sequence number; -1 = none
        ("bytes", "i8"),
        ("address", "i8"),
    ]
)
assert RECORD_DTYPE.itemsize == 96
