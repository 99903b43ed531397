"""The C++ core of the `neuron` device, typed and documented: the only place that loads the library.

Times are virtual (docs: time): nanoseconds from the start of the recording. Without a recording or a
timing session nothing here costs a program more than a check per operation.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import CodeType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from neuron_tools.device.build import load
from neuron_tools.hardware import told_cores

if TYPE_CHECKING:
    import torch

Function = TypeVar("Function", bound=Callable[..., Any])

Argument: TypeAlias = Any
"""One argument of an operator, in schema order: None, bool, int, float, complex and str as they are;
`("tensor", dtype, sizes, strides, storage, on_device)` where equal `storage` numbers mean shared memory;
`("number_tensor", dtype)` for a Python number that PyTorch wrapped; `("dtype", "float32")`;
`("device", "neuron:0")`; `("layout", n)`; `("memory_format", n)`; `("generator",)`;
`("list", (entry, ...))`. Dtypes are spelled as `torch`'s attributes."""

SignatureCallback: TypeAlias = Callable[[str, tuple[Argument, ...]], tuple[int, int, int]]
"""(operator name as "aten::add.Tensor", arguments) -> (executable id, duration in ns, flags)."""

StackCallback: TypeAlias = Callable[[int, tuple[tuple[str, int, str], ...]], None]
"""(stack id, ((file, line, function), ...) innermost first)."""

NameCallback: TypeAlias = Callable[[int, str], None]
"""(name id, text)."""

FusionCallback: TypeAlias = Callable[[list[Any]], tuple[int, int, int, int]]
"""Operations that wait together -> (executable id, duration in ns, flags, how many of the first run as it).

Each is (executable id, [(buffer, offset), ...] of its tensor arguments, [(buffer, offset, dtype, sizes,
strides, needed), ...] of its results). Equal buffer numbers mean shared memory, -1 the host's; `needed` says
whether anybody can still read it. Fewer than two: they are better off alone."""

SampledFrameCallback: TypeAlias = Callable[[CodeType, int, tuple[int, int, int, int], bool], str]
"""(code, offset of the instruction in bytes, first and last line and column of what it evaluates, whether the
frame is the innermost of a stack) -> what the file of stacks says of the frame."""

EagerFusion: TypeAlias = Literal["off", "auto", "on"]
_FUSION_MODES: dict[EagerFusion, int] = {"off": 0, "auto": 1, "on": 2}
BEGINS_FUSION, CANNOT_FUSE = 4, 8
"""Flags of a `SignatureCallback`: others may join the operation, but it joins none; it runs alone."""

_core: Any = None
_load_lock = threading.Lock()


def core() -> Any:
    """The extension module, built on first use."""
    global _core
    if _core is None:
        import torch  # noqa: F401  # it registers the device, which comes here too: not within the lock

        with _load_lock:
            if _core is None:
                module = load()
                cores = told_cores()
                if cores is not None:
                    module.set_default_device_count(cores)
                module.set_internal_folders(*_internal_folders())
                _core = module
    return _core


def _internal_folders() -> tuple[str, str]:
    """Ours and the framework's."""
    import torch

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return package + os.sep, os.path.dirname(torch.__file__) + os.sep


def register_xla_device() -> None:
    """Lets PyTorch make and differentiate tensors on `xla`, and cast them under `torch.autocast`."""
    core().register_xla_device()


def register_ranked_model() -> None:
    """Lets TorchScript know `torch.classes.neuron.SPMDModel`, a program on several cores of this process."""
    core().register_ranked_model()


def set_memory_limit(limit_bytes: int) -> None:
    """Device memory of each NeuronCore in bytes; 0 means no limit. Default: `$NEURON_TOOLS_HBM_BYTES`."""
    core().set_memory_limit(limit_bytes)


def memory_limit() -> int:
    """The limit that `set_memory_limit` set, in bytes; 0 means none."""
    return int(core().memory_limit())


def buffer_number(tensor: torch.Tensor) -> int:
    """The `address` of ALLOCATE records that stands for a tensor's memory; 0 where that is the host's."""
    if tensor.device.type != "neuron":
        return 0
    return int(core().buffer_number(tensor.untyped_storage()._cdata))


def start_recording(
    path: str,
    on_signature: SignatureCallback,
    on_stack: StackCallback,
    on_name: NameCallback,
    on_fusion: FusionCallback | None = None,
) -> None:
    """Starts virtual time at 0 and appends every piece of device work to the log at `path`.

    The callbacks run with the GIL, on the thread that met the new thing, outside virtual time and
    unrecorded. One that raises warns once; its operations then take no device time.

    Args:
        path: The log, made of `neuron_tools.records.capture_log.RECORD_DTYPE` records; appended to if there.
        on_signature: Called once for each operator with arguments of new dtypes, sizes, strides,
            aliasing or scalar values.
        on_stack: Called once for each new source stack (at most 32 user frames).
        on_name: Called once for each new operation or range name.
        on_fusion: Called once for each new sequence of operations that wait for the device together.

    Raises:
        RuntimeError: A recording is under way, or the log cannot be made.
    """
    core().start_recording(path, on_signature, on_stack, on_name, on_fusion)


def start_timing(on_signature: SignatureCallback, on_fusion: FusionCallback | None = None) -> None:
    """Starts virtual time without a log: events and torch.profiler then show simulated times.

    Raises:
        RuntimeError: A recording is under way.
    """
    core().start_timing(on_signature, on_fusion)


def stop_recording() -> None:
    """Ends a recording or a timing session; what was recorded is written when this returns."""
    core().stop_recording()


def abandon_recording() -> None:
    """Ends a recording without writing what is not written yet; a forked child starts in this state."""
    core().abandon_recording()


def clear_operator_log() -> None:
    """Forget which operators the device ran; from the first call on, they are kept."""
    core().clear_operator_log()


def logged_operators() -> list[str]:
    """Operators that ran since `clear_operator_log`, sorted: "aten::add" and "aten::add.Tensor"."""
    names: list[str] = core().logged_operators()
    return names


def is_recording() -> bool:
    """Whether a log is being written."""
    return bool(core().recording_is_on())


def is_timing() -> bool:
    """Whether virtual time is kept and the calling thread is not suppressed."""
    return bool(core().timing_is_on())


def set_eager_fusion(mode: EagerFusion) -> None:
    """Chooses which eager operations run as one execution; what waits is placed first.

    Args:
        mode: "off", every operation alone; "auto", those that wait while the device is busy; "on", also those
            for which it is free: they wait until one comes that cannot join, or somebody looks.

    Raises:
        ValueError: There is no such mode.
    """
    if mode not in _FUSION_MODES:
        raise ValueError(f'Eager fusion is "off", "auto" or "on", not {mode!r}.')
    core().set_fusion(_FUSION_MODES[mode])


def settle() -> None:
    """Places what waits for the device, as a synchronisation does, without moving the host's clock."""
    core().settle()


def mark_boundary() -> None:
    """Lets no fused execution reach over this moment."""
    core().mark_boundary()


def flush() -> None:
    """Writes what was recorded so far."""
    core().flush()


def recording_error() -> str | None:
    """Why writing the log stopped (a full disk, say), or None. The program itself goes on."""
    error: str | None = core().recording_error()
    return error


def record_count() -> int:
    """Records made since the recording started."""
    return int(core().record_count())


def set_clock(mode: Literal["measured", "fixed"], fixed_ns_per_dispatch: int = 10_000) -> None:
    """Chooses how host time passes, before a recording starts.

    Args:
        mode: "measured" is wall time less what is not the user's; "fixed" lets each dispatch take
            `fixed_ns_per_dispatch` and nothing else take any, so that two runs are identical.
        fixed_ns_per_dispatch: Nanoseconds of one dispatch under the fixed clock.

    Raises:
        ValueError: There is no such mode.
    """
    if mode not in ("measured", "fixed"):
        raise ValueError(f'The host clock is "measured" or "fixed", not {mode!r}.')
    core().set_clock(mode == "fixed", fixed_ns_per_dispatch)


def host_now_ns() -> int:
    """The host's virtual time."""
    return int(core().host_now_ns())


def pause_clock() -> int:
    """Stops host time until `resume_clock`; pauses nest. Returns the time it stopped at."""
    return int(core().pause_clock())


def resume_clock() -> None:
    """Ends one `pause_clock`."""
    core().resume_clock()


@contextmanager
def paused_clock() -> Iterator[None]:
    """What the block does on the host takes no time of the program."""
    pause_clock()
    try:
        yield
    finally:
        resume_clock()


@contextmanager
def unrecorded() -> Iterator[None]:
    """What the block computes on the host or the device takes no time of the program and is not recorded."""
    with paused_clock(), _switched(suppress, True):
        yield


def uncounted_memory() -> AbstractContextManager[None]:
    """What the block allocates takes memory of no NeuronCore: values of what lies in parts on several."""
    return _switched(core().count_allocations, False)


def without_values() -> AbstractContextManager[None]:
    """Copies between host and device in the block take memory and time, and move no values."""
    return _switched(core().move_values, False)


@contextmanager
def _switched(switch: Callable[[bool], bool], value: bool) -> Iterator[None]:
    """The block runs with a value of a switch, which gives back what it held before."""
    previous = switch(value)
    try:
        yield
    finally:
        switch(previous)


def wall_now_ns() -> int:
    """The system's monotonic clock, for times outside virtual time."""
    return time.monotonic_ns()


def start_sampling(
    describe: SampledFrameCallback,
    file: int,
    stacks_file: int,
    *,
    main_thread: int,
    interval_ns: int,
    always: bool = False,
) -> None:
    """Writes what each thread is doing, less often where a look costs over a hundredth of the program's work.

    Args:
        describe: Gives the text of a frame. Called outside virtual time, mostly in a thread of the sampler's,
            once for each new frame, and once more when it is the innermost of a stack; only then is more than
            the first line known. It must not take a lock that Python code may hold.
        file: Where the records go, as `neuron_tools.records.host_samples` has them.
        stacks_file: Where a line of JSON goes for each stack that is new.
        main_thread: What `threading.get_ident` gives in the main thread.
        interval_ns: Wall time between two looks.
        always: Look where virtual time does not pass, too.
    """
    core().start_sampling(describe, file, stacks_file, main_thread, interval_ns, always)


def stop_sampling() -> None:
    """Ends `start_sampling`; no call or record comes after it. A forked child starts in this state."""
    core().stop_sampling()


def record_collection(start_ns: int, wall_start_ns: int, end_ns: int, wall_end_ns: int) -> None:
    """Writes that garbage was collected, where sampling is on; for the collector's callback to call."""
    own_frames = 2  # this function and the callback
    core().record_collection(start_ns, wall_start_ns, end_ns, wall_end_ns, own_frames)


def set_launch_overhead_ns(overhead_ns: int) -> None:
    """What the device adds before each execution."""
    core().set_launch_overhead_ns(overhead_ns)


def set_copy_model(bytes_per_second: float, latency_ns: int) -> None:
    """How long a copy between host and device takes: the latency, then the bytes at this rate."""
    core().set_copy_model(bytes_per_second, latency_ns)


def set_module(module_id: int) -> int:
    """Says which nn.Module the calling thread is in (0: none); returns the one before."""
    return int(core().set_module(module_id))


def name_module(module_id: int, text: str) -> None:
    """Tells a module's path, for tables of who holds memory."""
    core().name_module(module_id, text)


def set_optimizer(in_optimizer: bool) -> bool:
    """Says whether the calling thread is in an optimizer step; returns what held before."""
    return bool(core().set_optimizer(in_optimizer))


def intern_name(text: str) -> int:
    """The number of a name in the log; new ones are told to `on_name` first."""
    return int(core().intern_name(text))


def record_range(name_id: int, start_ns: int, end_ns: int, kind: int) -> None:
    """Records a closed host range of a `RecordKind` (RANGE, STEP, MODULE_CALL) with the caller's stack."""
    core().record_range(name_id, start_ns, end_ns, kind)


def hide_thread() -> None:
    """Keep what the calling thread does from now on out of Python profiles, torch.profiler's stacks too."""
    core().hide_thread()


def unseen(function: Function) -> Function:
    """A callable that does what `function` does and leaves no row in Python profiles."""
    hidden: Function = core().unseen(function)
    return hidden


def around(
    function: Function, before: Callable[[Any], object] | None, after: Callable[[Any, Any], object] | None
) -> Function:
    """`function` with something unseen before and after it, and without a frame of its own.

    Args:
        function: What the caller calls and profiles show.
        before: Called with the first argument; what it raises is raised in place of the call.
        after: Called with the first argument and what `before` returned, also after an exception.
    """
    wrapper: Function = core().around(function, before, after)
    functools.update_wrapper(wrapper, function)
    return wrapper


def suppress(suppressed: bool) -> bool:
    """Lets the calling thread compute without recording or time; returns what held before.

    Memory is still accounted for and recorded.
    """
    return bool(core().suppress(suppressed))


def run_graph(executable_id: int, duration_ns: int, name_id: int) -> None:
    """Places one execution of a compiled graph on the current device and stream, and records it.

    Args:
        executable_id: What ran.
        duration_ns: Its device time.
        name_id: Its name's number (`intern_name`).
    """
    core().run_graph(executable_id, duration_ns, name_id)


def issue_collective(device: int, has_user_frames: bool) -> tuple[object, int] | None:
    """Begins a collective on the calling thread's current stream.

    Args:
        device: Index of the NeuronCore.
        has_user_frames: Whether the user's code is on the calling thread's Python stack: autograd's thread
            calls collectives too.

    Returns:
        (what `record_collective` takes, the time at which its inputs are there), or None where no virtual
        time is kept.
    """
    issued: tuple[object, int] | None = core().issue_collective(device, has_user_frames)
    return issued


def record_collective(
    issued: object,
    signature: int,
    title: str,
    sequence: int,
    byte_count: int,
    ready_ns: int,
    start_ns: int,
    end_ns: int,
) -> None:
    """Records a collective whose times are known, and shows it to torch.profiler.

    Args:
        issued: What `issue_collective` gave.
        signature: Number of its description in the log's definitions.
        title: Its name for torch.profiler.
        sequence: Which one of its group it is.
        byte_count: Bytes of the larger of this rank's input and output.
        ready_ns: When this rank was ready.
        start_ns: When it began to move.
        end_ns: When it ended.
    """
    core().record_collective(issued, signature, title, sequence, byte_count, ready_ns, start_ns, end_ns)


def hold_stream(device: int, time_ns: int) -> None:
    """The calling thread's current stream of the device does nothing before a time."""
    core().hold_stream(device, time_ns)


def wait_host(device: int, time_ns: int) -> None:
    """The host waits until a time, as it does in a synchronisation."""
    core().wait_host(device, time_ns)


def set_event_time(time_ns: int) -> int:
    """Lets events that the calling thread records happen at a time; -1: when it has come to them.

    Returns:
        What held before.
    """
    return int(core().set_event_time(time_ns))


def capture_stack() -> int:
    """The number of the caller's source stack; new ones are told to `on_stack` first."""
    return int(core().capture_stack())
