"""The trace of one kernel run: what every instruction call adds to, while its values are computed.

A call adds one row of small integers: the kind of instruction (interned by its operands' forms), the call
site (interned by the stack of bytecode positions), the loop iteration, and its operands' regions. That is
all that happens per call; dependencies, addresses and the Program are computed afterwards over the rows.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from neuron_tools.hardware import NeuronCore
from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.dtypes import DType
from neuron_tools.nki.errors import NkiValidationError, TracingError, UninitializedReadError
from neuron_tools.nki.kinds import Kind
from neuron_tools.nki.layout import row_major
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.simulator.program import Frame

if TYPE_CHECKING:
    from neuron_tools.nki.tensor import NkiTensor, ViewForm

ROW_WIDTH = 9
"""Integers of one row: kind, site, iteration, two regions written, four regions read (-1: none)."""
REGION_WIDTH = 5
"""Integers of one region: buffer, first line, last line, first byte, last byte (ends exclusive)."""
ITERATION_WIDTH = 3
"""Integers of one iteration: enclosing iteration, loop, value."""

PARTITIONS = 128

_ACTIVE: Tracer | None = None
_INTERNAL: set[int] = set()
_getframe = sys._getframe


class NeedsValues(Exception):
    """A run without values came to a point that depends on them."""


def active() -> Tracer:
    """The trace of the kernel that is running.

    Raises:
        TracingError: No kernel is running.
    """
    if _ACTIVE is None:
        raise TracingError(
            "this is part of the NKI language and works only inside a kernel: call it from a function "
            "decorated with @nki.jit"
        )
    return _ACTIVE


def running() -> Tracer | None:
    """The trace of the kernel that is running, or None."""
    return _ACTIVE


def activate(trace: Tracer | None) -> Tracer | None:
    """Make a trace the running one; returns the one that ran before."""
    global _ACTIVE
    before, _ACTIVE = _ACTIVE, trace
    return before


def where() -> str:
    """The kernel's current line, "file:line in function"; "" outside kernels."""
    if _ACTIVE is None:
        return ""
    site = _ACTIVE.site()
    return _ACTIVE.describe_site(site)


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the kernel: its frames, innermost first. Code objects are kept so that ids stay unique."""

    frames: tuple[Frame, ...]
    codes: tuple[CodeType, ...]


class Tracer:
    """State of one run of one kernel instance.

    Attributes:
        core: The NeuronCore whose rules hold.
        values: Whether values are computed.
        recording: Whether instructions are recorded.
        rows, regions, iterations: Flat tables, see ROW_WIDTH, REGION_WIDTH, ITERATION_WIDTH.
        buffers: Buffers in order of declaration.
        kinds, kind_list: Kinds by key and by number.
        program_ids, grid: Place in the launch grid, and the grid.
    """

    def __init__(
        self,
        core: NeuronCore,
        *,
        values: bool = True,
        recording: bool = True,
        older_dialect: bool = False,
        grid: tuple[int, ...] = (),
    ) -> None:
        self.core = core
        self.values = values
        self.recording = recording
        self.older_dialect = older_dialect
        self.grid = grid
        self.program_ids: tuple[int, ...] = (0,) * len(grid)
        self.rows = array("i")
        self.regions = array("i")
        self.region_count = 0
        self.iterations = array("i")
        self.iteration = -1
        self.loops: list[tuple[str, str, int]] = []
        self.loop_numbers: dict[Any, int] = {}
        self.buffers: list[Buffer] = []
        self.forms: dict[Any, ViewForm] = {}
        self.kinds: dict[Any, Kind] = {}
        self.kind_list: list[Kind] = []
        self.sites: dict[Any, int] = {}
        self.site_list: list[Site] = []
        self.site_override = -1
        self.pending: NkiTensor | None = None
        self.warnings: dict[str, None] = {}
        self.stop_code: CodeType | None = None
        self.shared: dict[Any, Any] = {}
        self.accumulators: dict[Any, Any] = {}
        self.random = np.random.default_rng(0)
        self.launch: Any = None
        if not _INTERNAL:
            _note_internal_modules()

    # Rows

    def record(
        self, kind: Kind, w0: int, w1: int = -1, r0: int = -1, r1: int = -1, r2: int = -1, r3: int = -1
    ) -> None:
        """Add one instruction; the arguments are regions."""
        if self.recording:
            site = self.site_override
            if site < 0:
                site = self.site()
            self.rows.extend((kind.number, site, self.iteration, w0, w1, r0, r1, r2, r3))

    def add_region(self, buffer: int, first: int, last: int, low: int, high: int) -> int:
        """Add a region; returns its row."""
        self.regions.extend((buffer, first, last, low, high))
        row = self.region_count
        self.region_count = row + 1
        return row

    def add_kind(self, key: Any, kind: Kind) -> Kind:
        """Keep a new kind under its key."""
        kind.number = len(self.kind_list)
        self.kind_list.append(kind)
        self.kinds[key] = kind
        return kind

    def site(self) -> int:
        """Number of the kernel's current call site, with all its callers inside the kernel."""
        if self.site_override >= 0:
            return self.site_override
        frame: FrameType | None = _getframe(2)
        internal = _INTERNAL
        while frame is not None and id(frame.f_globals) in internal:
            if frame.f_code is self.stop_code:
                return -1
            frame = frame.f_back
        if frame is None:
            return -1
        inner = frame
        key: Any = (id(frame.f_code), frame.f_lasti)
        back = frame.f_back
        if back is not None and back.f_code is not self.stop_code:
            chain = [*key]
            stop = self.stop_code
            while back is not None and back.f_code is not stop:
                if id(back.f_globals) not in internal:
                    chain.append(id(back.f_code))
                    chain.append(back.f_lasti)
                back = back.f_back
            key = tuple(chain)
        found = self.sites.get(key)
        return found if found is not None else self._new_site(key, inner)

    def _new_site(self, key: Any, inner: FrameType) -> int:
        frames: list[Frame] = []
        codes: list[CodeType] = []
        frame: FrameType | None = inner
        while frame is not None and frame.f_code is not self.stop_code:
            if id(frame.f_globals) not in _INTERNAL:
                code = frame.f_code
                name = getattr(code, "co_qualname", code.co_name)
                frames.append(Frame(code.co_filename, frame.f_lineno or 0, name))
                codes.append(code)
            frame = frame.f_back
        number = len(self.site_list)
        self.site_list.append(Site(tuple(frames), tuple(codes)))
        self.sites[key] = number
        return number

    def describe_site(self, site: int) -> str:
        """A call site as "file:line in function"."""
        if not 0 <= site < len(self.site_list) or not self.site_list[site].frames:
            return ""
        frame = self.site_list[site].frames[0]
        return f"{frame.file}:{frame.line} in {frame.function}"

    # Loops

    def enter_iteration(self, parent: int, loop: int, value: int) -> None:
        """Note that a loop's variable took a value; rows from now on belong to that iteration."""
        iterations = self.iterations
        self.iteration = len(iterations) // ITERATION_WIDTH
        iterations.extend((parent, loop, value))

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
    ) -> Buffer:
        """Declare a tensor's memory.

        Raises:
            NkiValidationError: More partitions than there are, or a PSUM tile larger than PSUM.
        """
        blocks, lines, pitch = 1, 1, 1
        if region.is_on_chip:
            for extent in shape[:partition_axis]:
                blocks *= extent
            for extent in shape[partition_axis + 1 :]:
                pitch *= extent
            partitions = shape[partition_axis] if shape else 1
            if partitions > PARTITIONS:
                raise NkiValidationError(
                    f"a tile of shape {shape} in {region} needs {partitions} partitions, but there are "
                    f"{PARTITIONS}; put at most {PARTITIONS} elements on the partition dimension",
                    where(),
                )
            lines = blocks * partitions
        else:
            for extent in shape[:-1]:
                lines *= extent
            pitch = shape[-1] if shape else 1
        buffer = Buffer(
            len(self.buffers), region, dtype, shape, lines=max(lines, 1), pitch=max(pitch, 1),
            blocks=max(blocks, 1), site=self.site() if self.recording else -1, name=name, kind=kind,
        )  # fmt: skip
        self._check_size(buffer)
        self.buffers.append(buffer)
        return buffer

    def _check_size(self, buffer: Buffer) -> None:
        if buffer.region is MemoryRegion.sbuf:
            limit = self.core.sbuf_bytes_per_partition
        elif buffer.region is MemoryRegion.psum:
            limit = self.core.psum_bytes_per_partition
        else:
            return
        if buffer.pitch_bytes > limit:
            raise NkiValidationError(
                f"a tile of shape {buffer.shape} and type {buffer.dtype} needs {buffer.pitch_bytes} bytes of "
                f"each {buffer.region} partition, which has {limit}",
                where(),
            )

    # Results that are not stored yet (older dialect)

    def defer(self, tensor: NkiTensor) -> NkiTensor:
        """Hold a result back until something stores or uses it, so that it can be computed in its place."""
        if self.pending is not None:
            self.flush(self.pending)
        self.pending = tensor
        return tensor

    def flush(self, tensor: NkiTensor) -> None:
        """Give a held-back result a tile of its own."""
        emit = tensor.emit
        if emit is None:
            return
        tensor.emit = None
        if self.pending is tensor:
            self.pending = None
        region = tensor.form
        tensor.form = None
        tensor.storage = self.new_buffer(region, tensor.dtype, tensor._shape)
        tensor.strides = row_major(tensor._shape)
        emit(tensor)

    def settle(self, tensor: NkiTensor, target: NkiTensor) -> None:
        """Compute a held-back result straight into `target`, which it stands for from now on."""
        emit = tensor.emit
        assert emit is not None
        tensor.emit = None
        if self.pending is tensor:
            self.pending = None
        tensor.form = None
        tensor.storage, tensor.offset, tensor.dtype = target.backing, target.offset, target.dtype
        tensor._shape, tensor.strides, tensor.gather = target._shape, target.strides, target.gather
        tensor.limits = target.limits
        emit(target)

    def combine(self, target: NkiTensor, name: str, other: Any) -> None:
        """`target op= other`; a matmul that is held back accumulates in PSUM instead."""
        from neuron_tools.nki.tensor import NkiTensor

        emit = getattr(other, "emit", None)
        accumulates = getattr(emit, "accumulates", False)
        if name == "add" and accumulates and target.buffer is MemoryRegion.psum:
            assert emit is not None
            other.emit = HeldEmission(emit, accumulate=True)
            self.settle(other, target)
            return
        result = NkiTensor.arithmetic[name](target, other)
        if result.emit is not None:
            self.settle(result, target)
        else:
            NkiTensor.arithmetic["assign"](target, result)

    # What was written

    def check_read(self, view: NkiTensor) -> None:
        """Refuse to read what nothing has written.

        Raises:
            UninitializedReadError: Nothing of the view was written.
        """
        storage = view.storage
        assert storage is not None
        held = storage.holds(*view.box())
        if held == 2:
            return
        name = storage.name or f"of shape {storage.shape}"
        if held == 0:
            raise UninitializedReadError(
                f"a view of shape {view.shape} of the {storage.region} tensor {name} is read, but nothing "
                "has been written there; write it first (nisa.memset, a DMA or a result)",
                where(),
            )
        if not self.older_dialect:
            self.warn(f"{where()}: a part of the tensor {name} is read that nothing has written")

    def mark_written(self, view: NkiTensor) -> None:
        """Note that a view was written."""
        storage = view.storage
        assert storage is not None
        storage.mark(*view.box())

    def warn(self, text: str) -> None:
        """Keep a sentence for the user."""
        self.warnings[text] = None

    def needs_values(self) -> None:
        """Stop a run without values: what follows depends on them."""
        if not self.values:
            raise NeedsValues

    # The row table, for tests and lowering

    @property
    def row_count(self) -> int:
        """Instructions recorded."""
        return len(self.rows) // ROW_WIDTH

    def row_table(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """(rows, ROW_WIDTH) int32."""
        return np.frombuffer(self.rows, np.int32).reshape(-1, ROW_WIDTH) if len(self.rows) else np.zeros(
            (0, ROW_WIDTH), np.int32
        )  # fmt: skip

    def region_table(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """(regions, REGION_WIDTH) int32."""
        if not len(self.regions):
            return np.zeros((0, REGION_WIDTH), np.int32)
        return np.frombuffer(self.regions, np.int32).reshape(-1, REGION_WIDTH)


class HeldEmission:
    """A held-back result's emission with arguments fixed."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: Callable[..., None], **arguments: Any) -> None:
        self.function = function
        self.arguments = arguments

    def __call__(self, target: NkiTensor) -> None:
        """Emit into `target`."""
        self.function(target, **self.arguments)


def _note_internal_modules() -> None:
    """Remember the modules of this package, whose frames are not the kernel's."""
    for name, module in list(sys.modules.items()):
        if name.startswith("neuron_tools.") or getattr(module, "__nki_names__", False):
            _INTERNAL.add(id(vars(module)))


def forget_internal_modules() -> None:
    """Look again for modules of this package, because some were imported since."""
    _INTERNAL.clear()
    _note_internal_modules()


def grid_size(grid: Sequence[int]) -> int:
    """Instances of a launch grid."""
    size = 1
    for extent in grid:
        size *= int(extent)
    return size
