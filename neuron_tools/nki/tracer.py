"""The trace of one kernel run: what every instruction call adds to, while its values are computed.

A call adds one row of small integers: the kind of instruction (interned by its operands' forms), the call
site (interned by the stack of bytecode positions), the loop iteration, and its operands' regions. That is
all that happens per call; dependencies, addresses and the Program are computed afterwards over the rows.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Sequence
from enum import Enum
from itertools import chain
from math import prod
from types import CodeType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from neuron_tools.arrays import Int32s
from neuron_tools.backend.kinds import Kind
from neuron_tools.hardware import NeuronCore
from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.call_sites import INTERNAL_MODULES, CallSites
from neuron_tools.nki.dtypes import DType, float32, float64
from neuron_tools.nki.errors import NkiValidationError, TracingError, UninitializedReadError
from neuron_tools.nki.layout import row_major
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.thoroughness import is_thorough
from neuron_tools.nki.view import View
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.kernel_source import KernelLaunch

ROW_WIDTH = 9
"""Integers of one row: kind, site, iteration, two regions written, four regions read (-1: none)."""
REGION_WIDTH = 5
"""Integers of one region: buffer, first line, last line, first byte, last byte (ends exclusive)."""
ITERATION_WIDTH = 3
"""Integers of one iteration: enclosing iteration, loop, value."""

PARTITIONS = 128

Held = TypeVar("Held", bound=View)


class _OfThread(threading.local):
    """The trace of the kernel that a thread runs: XLA calls the kernels of several devices at once."""

    trace: Tracer | None = None


OF_THREAD = _OfThread()
_getframe = sys._getframe


class Recording(Enum):
    """What of a run is kept.

    Attributes:
        NOTHING: Values only.
        CALLS: The instructions and where they come from: what checks of the whole run look at.
        ALL: Also the iterations that they belong to, for a Program.
    """

    NOTHING = 0
    CALLS = 1
    ALL = 2


class NeedsValues(Exception):
    """A run without values came to a point that depends on them."""


class NeedsCores(Exception):
    """Instances that run one after the other exchange data: they need a core each."""


def active() -> Tracer:
    """The trace of the kernel that this thread runs.

    Raises:
        TracingError: No kernel is running.
    """
    trace = OF_THREAD.trace
    if trace is None:
        raise TracingError(
            "this is part of the NKI language and works only inside a kernel: call it from a function "
            "decorated with @nki.jit"
        )
    return trace


def running() -> Tracer | None:
    """The trace of the kernel that this thread runs, or None."""
    return OF_THREAD.trace


def activate(trace: Tracer | None) -> Tracer | None:
    """Make a trace the one that this thread runs; returns the one that ran before."""
    before, OF_THREAD.trace = OF_THREAD.trace, trace
    return before


def where() -> str:
    """The kernel's current line, "file:line in function"; "" outside kernels."""
    trace = OF_THREAD.trace
    return "" if trace is None else trace.describe_site(trace.site())


class Extent(NamedTuple):
    """How a tensor of some shape lies in memory: lines of `pitch` elements in blocks, and its strides."""

    lines: int
    pitch: int
    blocks: int
    strides: tuple[int, ...]


def _measure(
    region: MemoryRegion, dtype: DType, shape: tuple[int, ...], partition_axis: int, core: NeuronCore
) -> Extent:
    """The extent of a tensor.

    Raises:
        NkiValidationError: More partitions than there are, or more bytes than a partition has.
    """
    strides = row_major(shape)
    if not region.is_on_chip:
        return Extent(max(prod(shape[:-1]), 1), max(shape[-1] if shape else 1, 1), 1, strides)
    if dtype is float64:
        raise NkiValidationError(
            f"the engines have no float64, but a tile of shape {shape} is declared; take float32", where()
        )
    partitions = shape[partition_axis] if shape else 1
    if partitions > PARTITIONS:
        raise NkiValidationError(
            f"a tile of shape {shape} in {region} needs {partitions} partitions, but there are "
            f"{PARTITIONS}; put at most {PARTITIONS} elements on the partition dimension",
            where(),
        )
    blocks, pitch = prod(shape[:partition_axis]), max(prod(shape[partition_axis + 1 :]), 1)
    on_sbuf = region is MemoryRegion.sbuf
    limit = core.sbuf_bytes_per_partition if on_sbuf else core.psum_bytes_per_partition
    if pitch * dtype.itemsize > limit and is_thorough():  # AWS's simulator knows no capacity
        raise NkiValidationError(
            f"a tile of shape {shape} and type {dtype} needs {pitch * dtype.itemsize} bytes of each {region} "
            f"partition, which has {limit}; tile it, or set NKI_CHECKS=fast to compute values alone",
            where(),
        )
    return Extent(max(blocks * partitions, 1), pitch, max(blocks, 1), strides)


class Tracer(CallSites):
    """State of one run of one kernel instance.

    Attributes:
        core: The NeuronCore whose rules hold.
        values: Whether values are computed.
        values_made_up: Whether an argument has no values. Loops and indices that depend on them are not those
            of the device, so that what seems unwritten there says nothing.
        wide: Whether narrow floats are stored as float32, without rounding.
        recording: Whether instructions are recorded.
        noting_loops: Whether the iterations that they belong to are recorded.
        calls: Distinct calls (kind, site, two regions written, four read), numbered in order.
        call_rows, iteration_rows: Call and iteration of every instruction.
        regions, iterations: Rows of REGION_WIDTH and ITERATION_WIDTH integers.
        buffers: Buffers in order of declaration.
        loops_at: Numbers of loops by the code that makes their range, its id and the place in it.
        kinds, kind_list: Kinds by key and by number.
        open_loops: Variables of the loops under way, outermost first (older dialect).
        ties: (later, earlier) instructions that the kernel tied to one another.
        ordered: (first, end) instructions that the kernel keeps in their order.
        names: Names that the kernel gave to calls (`name=`), by row.
        middle_end_skipped: Whether the kernel asked the compiler to leave its loops alone.
        prints: Whether anything is shown of what the kernel prints.
        program_ids, grid: Place in the launch grid, and the grid.
        launched: The call, as it can be made again without its data; None where it cannot.
    """

    def __init__(
        self,
        core: NeuronCore,
        *,
        values: bool = True,
        recording: Recording = Recording.ALL,
        older_dialect: bool = False,
        grid: tuple[int, ...] = (),
        wide: bool = False,
    ) -> None:
        super().__init__()
        self.core = core
        self.wide = wide
        self.values = values
        self.values_made_up = False
        self.recording = recording is not Recording.NOTHING
        self.noting_loops = recording is Recording.ALL
        self.older_dialect = older_dialect
        self.grid = grid
        self.program_ids: tuple[int, ...] = (0,) * len(grid)
        self.calls: dict[tuple[int, ...], int] = {}
        self.call_rows: list[int] = []
        self.iteration_rows: list[int] = []
        self.regions: list[tuple[int, ...]] = []
        self.iterations: list[tuple[int, int, int]] = []
        self.place: LoopPlace | None = None
        self.loops: list[tuple[str, str, int]] = []
        self.loop_numbers: dict[Any, int] = {}
        self.loops_at: dict[tuple[int, int], tuple[int, CodeType]] = {}
        self.open_loops: list[int] = []
        self.ties: list[tuple[int, int]] = []
        self.ordered: list[tuple[int, int]] = []
        self.names: dict[int, str] = {}
        self.middle_end_skipped = False
        self.prints = True
        self.buffers: list[Buffer] = []
        self.forms: dict[Any, ViewForm] = {}
        self.extents: dict[Any, Extent] = {}
        self.kinds: dict[Any, Kind] = {}
        self.kind_list: list[Kind] = []
        self.pending: View | None = None
        self.warnings: dict[str, None] = {}
        self.shared: dict[Any, Any] = {}
        self.accumulators: dict[Any, Any] = {}
        self.random: dict[Any, Any] = {}
        self.launch: Any = None
        self.launched: KernelLaunch | None = None
        self.data_dependent = False
        self._row_table = _no_rows(ROW_WIDTH)
        self._region_table = _no_rows(REGION_WIDTH)

    # Rows

    def record(
        self, kind: Kind, w0: int, w1: int = -1, r0: int = -1, r1: int = -1, r2: int = -1, r3: int = -1
    ) -> int:
        """Add one instruction; the arguments are regions. Returns its call site, -1 where none is kept."""
        if not self.recording:
            return -1
        site = self.site_override
        if site < 0:
            frame = _getframe(2)
            while id(frame.f_globals) in INTERNAL_MODULES:
                frame = frame.f_back  # type: ignore[assignment]  # a kernel's frame ends the walk
            found = self.sites.get(frame.f_lasti) if frame is self.frame else None
            site = self.site_in(frame) if found is None else found
        call = (kind.number, site, w0, w1, r0, r1, r2, r3)
        calls = self.calls
        number = calls.get(call)
        if number is None:
            number = calls[call] = len(calls)
        self.call_rows.append(number)
        if self.noting_loops:
            place = self.place
            if place is None:
                self.iteration_rows.append(-1)
            else:
                self.iteration_rows.append(place.number if place.number >= 0 else self._note_iteration(place))
        return site

    def note_name(self, name: str | None) -> None:
        """Keep the kernel's own name of the call that was recorded last, if it has one."""
        if name is not None and self.recording:
            self.names[len(self.call_rows) - 1] = str(name)

    def add_region(self, buffer: int, first: int, last: int, low: int, high: int) -> int:
        """Add a region; returns its row."""
        regions = self.regions
        regions.append((buffer, first, last, low, high))
        return len(regions) - 1

    def add_kind(self, key: Any, kind: Kind) -> Kind:
        """Keep a new kind under its key."""
        kind.number = len(self.kind_list)
        self.kind_list.append(kind)
        self.kinds[key] = kind
        return kind

    # Loops

    def _note_iteration(self, place: LoopPlace) -> int:
        """Keep the iteration that a loop is in, the first time that an instruction belongs to it."""
        around = place.around
        outer = -1
        if around is not None:
            outer = around.number if around.number >= 0 else self._note_iteration(around)
        place.number = len(self.iterations)
        self.iterations.append((outer, place.loop, place.value))
        return place.number

    # Buffers

    def new_buffer(
        self,
        region: MemoryRegion,
        dtype: DType,
        shape: tuple[int, ...],
        *,
        partition_axis: int = 0,
        name: str = "",
        kind: str = "scratch",
        is_placed: bool = False,
    ) -> Buffer:
        """Declare a tensor's memory.

        Args:
            region: Where it lies.
            dtype: Element type.
            shape: Its shape.
            partition_axis: The dimension that lies along the partitions.
            name: Its name in messages and the profile.
            kind: "input", "constant" or "scratch".
            is_placed: Whether the kernel gives it an address; a plain call, whose checks never show the line
                of such a tensor, does not look it up.

        Raises:
            NkiValidationError: More partitions than there are, or a PSUM tile larger than PSUM.
        """
        extent = self.extent(region, dtype, shape, partition_axis)
        buffer = Buffer(
            len(self.buffers), region, dtype, shape, lines=extent.lines, pitch=extent.pitch,
            blocks=extent.blocks, strides=extent.strides,
            site=self.site() if self.noting_loops or (self.recording and not is_placed) else -1, name=name,
            kind=kind,
        )  # fmt: skip
        if buffer.on_chip:
            buffer.tile_rank = 2
            buffer.is_owned_by_views = self.values
        if self.wide and dtype.is_narrow:
            buffer.element = float32.dtype
        self.buffers.append(buffer)
        return buffer

    def extent(
        self, region: MemoryRegion, dtype: DType, shape: tuple[int, ...], partition_axis: int
    ) -> Extent:
        """Lines and strides of a tensor, worked out and checked once per shape."""
        key = (region, dtype, shape, partition_axis)
        found = self.extents.get(key)
        if found is None:
            found = self.extents[key] = _measure(region, dtype, shape, partition_axis, self.core)
        return found

    # Results that are not stored yet (older dialect)

    def defer(self, tensor: Held) -> Held:
        """Hold a result back until something stores or uses it, so that it can be computed in its place."""
        if self.pending is not None:
            self.flush(self.pending)
        self.pending = tensor
        return tensor

    def flush(self, tensor: View) -> None:
        """Give a held-back result a tile of its own."""
        emit = tensor.emit
        if emit is None:
            return
        tensor.emit = None
        if self.pending is tensor:
            self.pending = None
        region = tensor.form
        tensor.form = None
        around, asked = self.site_override, getattr(emit, "site", -1)
        self.site_override = asked if asked >= 0 else around
        try:
            tensor.storage = self.new_buffer(region, tensor.dtype, tensor._shape)
        finally:
            self.site_override = around
        tensor.elements = tensor.storage.elements() if self.values else None
        tensor.strides = row_major(tensor._shape)
        emit(tensor)

    def settle(self, tensor: View, target: View) -> None:
        """Compute a held-back result straight into `target`, which it stands for from now on."""
        emit = tensor.emit
        assert emit is not None
        tensor.emit = None
        if self.pending is tensor:
            self.pending = None
        self.flush(target)
        tensor.stand_for(target)
        emit(target)

    def accumulates(self, tensor: Any, target: View) -> bool:
        """Let a matmul that is held back add to a PSUM tile; returns whether `tensor` is one."""
        emit = getattr(tensor, "emit", None)
        if not getattr(emit, "accumulates", False):
            return False
        self.flush(target)
        assert emit is not None
        assert target.storage is not None
        if target.storage.region is not MemoryRegion.psum:
            return False
        tensor.emit = HeldEmission(emit, accumulate=True)
        self.settle(tensor, target)
        return True

    def disown_tiles(self) -> None:
        """The kernel has ended: let no other one take its tiles for its own."""
        for buffer in self.buffers:
            if buffer.on_chip:
                buffer.complete = False  # so that uses come to `check_read` and `mark_written`

    # What was written

    def _require_own(self, storage: Buffer) -> None:
        """Refuse a tile that another kernel, or another call, has declared."""
        buffers = self.buffers
        if storage.on_chip and (storage.number >= len(buffers) or buffers[storage.number] is not storage):
            raise NkiValidationError(
                f"a tile of shape {storage.shape} is used that belongs to another call of a kernel, which "
                "has ended; declare it in this one",
                where(),
            )

    @property
    def is_guessing(self) -> bool:
        """Whether what has run so far depends on values that are made up."""
        return self.values_made_up and self.data_dependent

    def check_read(self, view: View) -> None:
        """Refuse to read what nothing has written.

        Raises:
            UninitializedReadError: Nothing of the view was written.
        """
        storage = view.storage
        assert storage is not None
        self._require_own(storage)
        held = storage.holds(*self.regions[view.region][1:])
        if held == 2 or self.is_guessing:
            return
        name = storage.name or f"of shape {storage.shape}"
        if held == 0:
            raise UninitializedReadError(
                f"a view of shape {view.shape} of the {storage.region} tensor {name} is read, but nothing "
                "has been written there; write it first (nisa.memset, a DMA or a result)",
                where(),
            )
        if not self.older_dialect:
            self.warn(
                f"{where()}: a part of the {storage.region} tensor {name} is read that nothing has written, "
                "where the device holds anything; write all of it first (nisa.memset), or read less"
            )

    def mark_written(self, view: View) -> None:
        """Note that a view was written."""
        storage = view.storage
        assert storage is not None
        self._require_own(storage)
        storage.mark(*self.regions[view.region][1:])

    def warn(self, text: str) -> None:
        """Keep a sentence for the user."""
        self.warnings[text] = None

    def needs_values(self) -> None:
        """Note that what follows depends on values; stop a run that computes none.

        Raises:
            NeedsValues: This run computes none.
        """
        self.data_dependent = True
        if not self.values:
            raise NeedsValues

    # The row table, for tests and lowering

    @property
    def row_count(self) -> int:
        """Instructions recorded."""
        return len(self.call_rows)

    def row_table(self) -> Int32s:
        """(rows, ROW_WIDTH) int32: kind, site, iteration, and the operands' regions of each instruction."""
        if len(self._row_table) != len(self.call_rows):
            calls = _table(list(self.calls), ROW_WIDTH - 1)
            table = np.empty((len(self.call_rows), ROW_WIDTH), np.int32)
            picked = calls[np.array(self.call_rows, np.int64)]
            table[:, :2], table[:, 3:] = picked[:, :2], picked[:, 2:]
            table[:, 2] = self.iteration_rows if self.noting_loops else -1
            table.flags.writeable = False
            self._row_table = table
        return self._row_table

    def region_table(self) -> Int32s:
        """(regions, REGION_WIDTH) int32: buffer, lines and bytes of each region."""
        if len(self._region_table) != len(self.regions):
            self._region_table = _table(self.regions, REGION_WIDTH)
            self._region_table.flags.writeable = False
        return self._region_table

    def iteration_table(self) -> Int32s:
        """(iterations, ITERATION_WIDTH) int32: enclosing iteration, loop, value of its variable."""
        return np.array(self.iterations, np.int32).reshape(-1, ITERATION_WIDTH)


def _table(rows: Sequence[tuple[int, ...]], width: int) -> Int32s:
    """Tuples of integers as the rows of a table."""
    return np.fromiter(chain.from_iterable(rows), np.int32, len(rows) * width).reshape(-1, width)


def _no_rows(width: int) -> Int32s:
    return np.zeros((0, width), np.int32)


class LoopPlace:
    """Where a loop under way stands.

    Attributes:
        around: The loop around it.
        loop: Its number.
        value: Its variable's value.
        number: Row of the iteration; -1 until an instruction belongs to it.
    """

    __slots__ = ("around", "loop", "number", "value")

    def __init__(self, around: LoopPlace | None, loop: int, value: int) -> None:
        self.around = around
        self.loop = loop
        self.value = value
        self.number = -1


class HeldEmission:
    """A held-back result's emission with arguments fixed."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: Callable[..., None], **arguments: Any) -> None:
        self.function = function
        self.arguments = arguments

    def __call__(self, target: View) -> None:
        """Emit into `target`."""
        self.function(target, **self.arguments)


def grid_size(grid: Sequence[int]) -> int:
    """Instances of a launch grid."""
    return math.prod(map(int, grid))
