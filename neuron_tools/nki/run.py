"""One launch of a kernel: arguments become HBM tensors, every instance runs, results come back."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.abstract import map_leaves
from neuron_tools.nki.arguments import Adapter, find_adapter
from neuron_tools.nki.blas_threads import one_thread
from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.conversion import as_element
from neuron_tools.nki.core_race import IDLE, UNDECIDED, SharedBuffer, check_cores, warn_of_race
from neuron_tools.nki.dtypes import as_dtype
from neuron_tools.nki.errors import ArgumentRaceError, NkiValidationError
from neuron_tools.nki.kernel_ranges import traced_ranges
from neuron_tools.nki.launch_record import describe_launch
from neuron_tools.nki.layout import row_major
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.misuse import RAISED, explained
from neuron_tools.nki.muted_output import muted
from neuron_tools.nki.returned import check_kind, check_lost, check_written, returning_line
from neuron_tools.nki.shared_launch import CoreTracer, SharedLaunch
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import Recording, Tracer

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
    with _uncollected(), one_thread():
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


def _new_trace(launch: Launch, of: type[Tracer] = Tracer) -> Tracer:
    trace = of(launch.core, values=launch.values, recording=launch.recording,
               older_dialect=launch.older_dialect, grid=launch.grid, wide=_is_wide(launch))  # fmt: skip
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
    """Turns arguments into HBM tensors and keeps what is needed to return results in kind.

    Args:
        trace: Of the core that takes them.
        borrowed: Whether the caller's memory is not written before `write_back`.
    """

    def __init__(self, trace: Tracer, borrowed: bool = False) -> None:
        self.trace = trace
        self._borrowed = borrowed
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
            elements = values if values.dtype == dtype.dtype else values.view(dtype.dtype)
            storage.hold_argument(elements, self._borrowed)
        storage.written_all()
        self.trace.values_made_up |= adapter.makes_values_up
        self.storages.append((storage, value, adapter))
        tensor = NkiTensor(storage, dtype, shape, row_major(shape))
        self._known[id(value)] = tensor
        return tensor

    def write_back(self) -> None:
        """Give arguments that the kernel wrote into their new values; those it only read stay as they are."""
        for storage, value, adapter in self.storages:
            if storage.borrowed:
                continue
            narrow = as_element(storage.data, storage.dtype.dtype)
            given = adapter.array(value)
            if not np.shares_memory(given, narrow) and not _same_bytes(given, narrow):
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


def _run_side_by_side(launch: Launch, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Run:
    cores = _Cores(launch, arguments, keywords)
    cores.run(launch)
    if launch.recording is not Recording.NOTHING:
        try:
            check_cores(cores.traces, cores.shared_buffers())
        except ArgumentRaceError as error:
            _judge_race(error, cores, launch, arguments, keywords)
    return _finished(launch, cores.traces, cores.inputs[0], cores.results)


def _judge_race(
    error: ArgumentRaceError,
    cores: _Cores,
    launch: Launch,
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
) -> None:
    """Warn of a race on an argument on which no result depends, or where only values can tell.

    Raises:
        ArgumentRaceError: The call's values show that results depend on it, or the other order cannot be
            tried, as other ranks take part.
    """
    if not launch.values or any(trace.values_made_up for trace in cores.traces):
        for trace in cores.traces:
            trace.data_dependent = True  # so that calls on values are run, and judged, each by itself
        warn_of_race(error, UNDECIDED)
    elif cores.communicate() or _changes_results(cores, launch, arguments, keywords):
        raise error
    else:
        warn_of_race(error, IDLE)


def _changes_results(
    cores: _Cores, launch: Launch, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> bool:
    """Whether results or arguments differ, or the kernel fails, where one core goes to its meetings first."""
    for first in range(launch.cores):
        again = _Cores(launch, arguments, keywords, trying=first)
        try:
            with muted():
                again.run(launch)
        except Exception:
            return True
        if not all(map(_same_bytes, cores.values(), again.values())):
            return True
    return False


def _same_bytes(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Whether the elements, in order, have the same bits."""
    return one.dtype == other.dtype and np.array_equal(_bytes(one), _bytes(other))


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


class _Cores:
    """The instances of a kernel on the physical cores of one logical NeuronCore.

    Attributes:
        traces: Of each core.
        inputs: The arguments as each core knows them; their values are the first one's.
        results: What each instance returned.

    Args:
        trying: A core that goes on to its meetings before the others begin, to show what would be then;
            nothing is printed. None: the cores write by turns.
    """

    def __init__(
        self,
        launch: Launch,
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any],
        trying: int | None = None,
    ) -> None:
        self.traces = [_new_trace(launch, CoreTracer) for _ in range(launch.cores)]
        may_run_again = launch.recording is not Recording.NOTHING
        self.inputs = [_Inputs(trace, borrowed=may_run_again) for trace in self.traces]
        self.results: list[Any] = [None] * launch.cores
        self._shared = SharedLaunch(self.traces, trying or 0, takes_turns_writing=trying is None)
        for trace in self.traces:
            trace.launch = self._shared
            trace.prints = trying is None
        self._given = [(inputs.bind(arguments), inputs.bind(dict(keywords))) for inputs in self.inputs]
        for other in self.inputs[1:]:
            _share_inputs(self.inputs[0], other)

    def run(self, launch: Launch) -> None:
        """Every instance to its end."""

        def work(rank: int) -> None:
            trace = self.traces[rank]
            tracing.activate(trace)
            _start_instance(trace, (rank,))
            self.results[rank] = _invoke(launch.function, *self._given[rank])
            if trace.pending is not None:
                trace.flush(trace.pending)

        with traced_ranges(launch.function):
            try:
                self._shared.run_all(work)
            finally:
                for trace in self.traces:
                    trace.leave()

    def shared_buffers(self) -> list[SharedBuffer]:
        """The memories that all cores know."""
        return [*self._shared.shared_buffers(), *_common_inputs(self.inputs)]

    def communicate(self) -> bool:
        """Whether the kernel takes part in collectives, which other ranks run once."""
        kinds = (kind for trace in self.traces for kind in trace.kind_list)
        return any(kind.transfer is not None and kind.transfer.collective is not None for kind in kinds)

    def values(self) -> Iterator[npt.NDArray[Any]]:
        """What the instances return, and the arguments as they are now."""
        for tensor in (tensor for result in self.results for tensor in _tensors(result)):
            yield tensor.array
        for storage, _, _ in self.inputs[0].storages:
            yield storage.data


def _common_inputs(inputs: list[_Inputs]) -> list[SharedBuffer]:
    storages = zip(*([storage for storage, _, _ in each.storages] for each in inputs))
    return [SharedBuffer(group[0].name, tuple(each.number for each in group), True) for group in storages]


def _share_inputs(first: _Inputs, other: _Inputs) -> None:
    for (source, _, _), (storage, _, _) in zip(first.storages, other.storages):
        if other.trace.values:
            storage.hold_argument(source.data, source.borrowed)
            source.peers.append(storage)
            storage.peers.append(source)
