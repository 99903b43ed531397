"""One launch of a kernel: arguments become HBM tensors, every instance runs, results come back."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.abstract import map_leaves
from neuron_tools.nki.arguments import Adapter, find_adapter
from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.conversion import as_element
from neuron_tools.nki.core_race import SharedBuffer, check_cores
from neuron_tools.nki.dtypes import as_dtype
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.kernel_ranges import traced_ranges
from neuron_tools.nki.launch_record import describe_launch
from neuron_tools.nki.layout import row_major
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.misuse import RAISED, explained
from neuron_tools.nki.returned import check_kind, check_lost, check_written, returning_line
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import Recording, Tracer
from neuron_tools.nki.turns import Turns

PRECISE = "NKI_PRECISE_FP"
"""Environment variable: "0" stores bfloat16 and float8 as float32, as AWS's simulator does then."""


@frozen
class Launch:
    """What to run and how.

    Attributes:
        function: The kernel's own function.
        name: Its name.
        core: NeuronCore whose rules hold.
        grid: Extent of each axis; () for a plain call.
        cores: Physical cores that run instances side by side: 1 or 2.
        older_dialect: Whether the kernel came from `neuronxcc.nki`.
        values: Whether to compute values.
        recording: What of the run to keep.
        simulated: Whether the kernel asked for AWS's simulator, which lets it return tiles on chip and, in
            the older dialect, does not round narrow floats.
    """

    function: Callable[..., Any]
    name: str
    core: NeuronCore
    grid: tuple[int, ...] = ()
    cores: int = 1
    older_dialect: bool = False
    values: bool = True
    recording: Recording = Recording.ALL
    simulated: bool = False


@dataclass(slots=True)
class Run:
    """What a launch left behind.

    Attributes:
        outputs: What the kernel returned, tensors as arrays of the caller's kind.
        traces: One per core, recorded instructions and all.
        results: Tensors that the kernel returned.
        core_results: The same of each core, as its own trace knows them.
    """

    outputs: Any
    traces: list[Tracer]
    results: list[NkiTensor] = field(default_factory=list)
    core_results: list[list[NkiTensor]] = field(default_factory=list)


def run(launch: Launch, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Run:
    """Run every instance of a launch.

    Raises:
        NkiError: The kernel breaks a rule; the text names its line.
    """
    with _uncollected():
        if launch.cores > 1:
            done = _run_side_by_side(launch, arguments, keywords)
        else:
            done = _run_in_turn(launch, arguments, keywords)
        for trace in done.traces:
            trace.disown_tiles()
    if launch.recording is Recording.ALL and not any(trace.data_dependent for trace in done.traces):
        launched = describe_launch(launch.function, arguments, keywords, launch.grid, launch.cores)
        for trace in done.traces:
            trace.launched = launched
    return done


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector, which would walk the growing trace again and again.

    NumPy's warnings are off too: infinities and divisions by zero are values like others on the chip.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        if enabled:
            gc.enable()


def _run_in_turn(launch: Launch, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Run:
    trace = _new_trace(launch)
    inputs = _Inputs(trace)
    before = tracing.activate(trace)
    try:
        with traced_ranges(launch.function):
            given = inputs.bind(arguments), inputs.bind(dict(keywords))
            result = _run_instances(launch, trace, given)
    finally:
        trace.leave()
        tracing.activate(before)
    return _finished(launch, [trace], inputs, [result])


def _new_trace(launch: Launch) -> Tracer:
    trace = Tracer(launch.core, values=launch.values, recording=launch.recording,
                   older_dialect=launch.older_dialect, grid=launch.grid,
                   wide=_is_wide(launch))  # fmt: skip
    trace.stop_code = _invoke.__code__
    trace.middle_end_skipped = getattr(launch.function, "skips_middle_end", False)
    return trace


def _is_wide(launch: Launch) -> bool:
    """Whether narrow floats stay fp32: asked for, or as AWS's simulator has it up to NKI 0.3 (SDK 2.29)."""
    default = "0" if launch.simulated and launch.older_dialect else "1"
    return os.environ.get(PRECISE, default) == "0"


def _run_instances(launch: Launch, trace: Tracer, given: tuple[Any, Any]) -> Any:
    result = None
    for ids in np.ndindex(*launch.grid) if launch.grid else [()]:
        _start_instance(trace, tuple(int(i) for i in ids))
        result = _invoke(launch.function, *given)
        if trace.pending is not None:
            trace.flush(trace.pending)
    trace.place = None
    return result


def _start_instance(trace: Tracer, ids: tuple[int, ...]) -> None:
    from neuron_tools.nki.loops import loop_number

    trace.program_ids = ids
    trace.shared["shared-count"] = 0
    trace.accumulators.clear()
    trace.place = None
    if trace.noting_loops and tracing.grid_size(trace.grid) > 1:
        for axis, position in enumerate(ids):
            name = f"program_id({axis})"
            trace.place = tracing.LoopPlace(trace.place, loop_number(trace, name, "", 0), position)


def _invoke(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Call the kernel's function: the frame where call stacks end.

    Raises:
        NkiError: It breaks a rule, or calls the language in a way that Python or NumPy refuses.
    """
    try:
        return function(*arguments, **keywords)
    except RAISED as error:
        mistake = explained(error, _invoke.__code__)
        if mistake is None:
            raise
        raise mistake from error


class _Inputs:
    """Turns arguments into HBM tensors and keeps what is needed to return results in kind."""

    def __init__(self, trace: Tracer) -> None:
        self.trace = trace
        self.adapter: Adapter | None = None
        self.example: Any = None
        self.storages: list[tuple[Buffer, Any, Adapter]] = []
        self._known: dict[int, NkiTensor] = {}

    def bind(self, value: Any) -> Any:
        """The argument as the kernel sees it: arrays as tensors, containers searched."""
        return map_leaves(value, lambda leaf: find_adapter(leaf) is not None, self._tensor)

    def _tensor(self, value: Any) -> NkiTensor:
        known = self._known.get(id(value))
        if known is not None:
            return known
        adapter = find_adapter(value)
        assert adapter is not None
        if self.adapter is None:
            self.adapter, self.example = adapter, value
        shape = tuple(int(extent) for extent in adapter.shape(value))
        dtype = as_dtype(adapter.dtype(value))
        name = f"input.{len(self.storages)}"
        region = (
            MemoryRegion.hbm if self.trace.launch is None else MemoryRegion.shared_hbm
        )  # as AWS's simulator
        storage = self.trace.new_buffer(region, dtype, shape, kind="input", name=name)
        if self.trace.values:
            values = adapter.array(value).reshape(-1)
            storage.hold_argument(values if values.dtype == dtype.dtype else values.view(dtype.dtype))
        storage.written_all()
        self.trace.values_made_up |= adapter.makes_values_up
        self.storages.append((storage, value, adapter))
        tensor = NkiTensor(storage, dtype, shape, row_major(shape))
        self._known[id(value)] = tensor
        return tensor

    def write_back(self) -> None:
        """Give arguments that the kernel wrote into their new values."""
        for storage, value, adapter in self.storages:
            narrow = as_element(storage.data, storage.dtype.dtype)
            adapter.update(value, narrow.reshape(storage.shape))


def _finished(launch: Launch, traces: list[Tracer], inputs: _Inputs, results: list[Any]) -> Run:
    adapter = inputs.adapter or find_adapter(np.zeros(()))
    assert adapter is not None

    def unbind(value: Any) -> Any:
        if isinstance(value, NkiTensor):
            if value.buffer.is_on_chip and not launch.simulated:
                raise NkiValidationError(
                    f"the kernel {launch.name!r} returns a tile in {value.buffer}; copy it into a tensor in "
                    "HBM (nl.ndarray(..., buffer=nl.shared_hbm), nisa.dma_copy) and return that",
                    returning_line(launch.function),
                )
            if launch.values:
                narrow = as_element(value.array, value.dtype.dtype)
                return adapter.result(narrow, value.dtype, inputs.example)
            return adapter.empty(value.shape, value.dtype, inputs.example)
        if isinstance(value, (tuple, list)):
            return type(value)(unbind(item) for item in value)
        if isinstance(value, dict):
            return {key: unbind(item) for key, item in value.items()}
        check_kind(launch.function, value)
        return value

    outputs = unbind(results[0])
    made = [_tensors(result) for result in results]
    if not traces[0].is_guessing:
        check_written(launch.function, made[0])
    if launch.recording is not Recording.NOTHING and len(traces) == 1 and not made[0]:
        check_lost(launch.function, traces[0])
    for tensor in (tensor for tensors in made for tensor in tensors):
        if tensor.backing.kind == "scratch":
            tensor.backing.kind = "output"
    if launch.values:
        inputs.write_back()
    return Run(outputs, traces, made[0], made)


def _tensors(result: Any) -> list[NkiTensor]:
    """The tensors of a kernel's result, in order."""
    found: list[NkiTensor] = []

    def keep(leaf: NkiTensor) -> NkiTensor:
        found.append(leaf)
        return leaf

    map_leaves(result, lambda leaf: isinstance(leaf, NkiTensor), keep)
    return found


class SharedLaunch(Turns):
    """Two physical cores of one logical NeuronCore, taking turns until both wait for each other.

    Only one core's instance runs at a time; it hands over when it waits at a barrier or ends.
    """

    def __init__(self, cores: int) -> None:
        super().__init__(cores, "another core's instance failed")
        self.cores = cores
        self._arrived: dict[Any, int] = {}
        self._buffers: dict[Any, Buffer] = {}
        self._numbers: dict[Any, dict[int, int]] = {}
        self._mail: dict[Any, Any] = {}
        self.rank: dict[int, int] = {}

    def share(self, key: Any, storage: Buffer) -> None:
        """Let tensors in shared HBM of the same name be one memory on all cores."""
        storage.written_all()
        self._numbers.setdefault(key, {})[self.rank[id(tracing.active())]] = storage.number
        first = self._buffers.setdefault(key, storage)
        if first is not storage:
            storage.factory = lambda: first.data

    def shared_buffers(self) -> list[SharedBuffer]:
        """The tensors in shared HBM that every core made."""
        return [
            SharedBuffer(self._buffers[key].name, tuple(numbers[rank] for rank in range(self.cores)))
            for key, numbers in self._numbers.items()
            if len(numbers) == self.cores
        ]

    def barrier(self, trace: Tracer) -> None:
        """Wait until every core has come to its barrier."""
        rank = self.rank[id(trace)]
        number = trace.shared["barriers"] = trace.shared.get("barriers", 0) + 1
        self._arrived[number] = self._arrived.get(number, 0) + 1
        _note_meeting(trace)
        while self._arrived[number] < self.cores and len(self._ended) < self.cores - 1:
            self.switch(rank)

    def exchange(self, trace: Tracer, values: Any, to: int, source: int, pipe: int) -> Any:
        """Send values to a core and take those that another sent.

        Raises:
            NkiValidationError: The other core has ended and sent nothing.
        """
        rank = self.rank[id(trace)]
        number = trace.shared[("pipe", pipe)] = trace.shared.get(("pipe", pipe), 0) + 1
        self._mail[pipe, number, rank, to] = values
        _note_meeting(trace)
        wanted = (pipe, number, source, rank)
        while wanted not in self._mail:
            if len(self._ended) >= self.cores - 1:
                raise NkiValidationError(
                    f"core {source} never sends what core {rank} waits for", tracing.where()
                )
            self.switch(rank)
        return self._mail[wanted]

    def has_other_than(self, rank: int) -> bool:
        """Whether another core's instance goes on."""
        return len(self._ended - {rank}) < self.cores - 1


def _note_meeting(trace: Tracer) -> None:
    """Remember the row before which the cores met."""
    trace.shared.setdefault("meetings", []).append(trace.row_count)


def _run_side_by_side(launch: Launch, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Run:
    shared = SharedLaunch(launch.cores)
    traces = [_new_trace(launch) for _ in range(launch.cores)]
    inputs = [_Inputs(trace) for trace in traces]
    results: list[Any] = [None] * launch.cores

    def work(rank: int) -> None:
        trace = traces[rank]
        tracing.activate(trace)
        given = inputs[rank].bind(arguments), inputs[rank].bind(dict(keywords))
        if rank:
            _share_inputs(inputs[0], inputs[rank])
        _start_instance(trace, (rank,))
        results[rank] = _invoke(launch.function, *given)
        if trace.pending is not None:
            trace.flush(trace.pending)

    for rank, trace in enumerate(traces):
        trace.launch = shared
        shared.rank[id(trace)] = rank
    with traced_ranges(launch.function):
        try:
            shared.run_all(work)
        finally:
            for trace in traces:
                trace.leave()
    if launch.recording is not Recording.NOTHING:
        check_cores(traces, [*shared.shared_buffers(), *_common_inputs(inputs)])
    return _finished(launch, traces, inputs[0], results)


def _common_inputs(inputs: list[_Inputs]) -> list[SharedBuffer]:
    storages = zip(*([storage for storage, _, _ in each.storages] for each in inputs))
    return [SharedBuffer(group[0].name, tuple(storage.number for storage in group)) for group in storages]


def _share_inputs(first: _Inputs, other: _Inputs) -> None:
    for (source, _, _), (storage, _, _) in zip(first.storages, other.storages):
        if other.trace.values:
            storage.hold_argument(source.data)
            source.peers.append(storage)
            storage.peers.append(source)
