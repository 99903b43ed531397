"""Compiles functions that look at every byte, span or instruction. The result is kept on disk.

A wheel carries the machine code of what most programs use (`SHIPPED_CODE`, made by
`scripts/compile_loops.sh`), for one Python, one numba and one level of processors. What fits is taken from
there; all else is compiled when it is first called.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar, cast
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from neuron_tools.errors import NeuronToolsError

try:
    import numba
    from llvmlite.binding import get_host_cpu_features
    from numba.core import cgutils, types
    from numba.core.caching import FunctionCache, IndexDataCacheFile
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.runtime.nrt import rtsys
    from numba.extending import intrinsic, is_jitted
except ModuleNotFoundError as error:
    raise NeuronToolsError(
        f"This needs the package '{error.name}', which compiles loops: install it with "
        "'python -m pip install \"neuron-tools[profile]\"'."
    ) from error

Values = TypeVar("Values", bound=npt.NDArray[Any])
Function = TypeVar("Function", bound=Callable[..., Any])
LOCK_NAME = "neuron-tools.lock"
LONGEST_WAIT_S = 120.0
"""Seconds that a process waits for the code that another one compiles before it does so itself."""
SHIPPED_CODE = Path(__file__).parent / "compiled_loops"
SHIPPED_CPU = ("x86-64-v3", "")
"""Processor and further features that the shipped code is for, as numba's index spells them."""
PART = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of a function that only compiled code calls. No way in from Python is made for it, which takes
numba about as long as the rest of a short function of many arrays."""
# x86-64 psABI 1.0, section 3.1.1, beyond x86-64-v2.
_NEEDED_FEATURES = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")


def compiled(function: Function) -> Function:
    """A function of arrays and numbers as machine code, which runs while other threads run Python."""
    return _compiled(function)


def compiled_part(function: Function) -> Function:
    """The same for a function that only compiled code calls; see `PART`."""
    return _compiled(function, **PART)


def compiled_with(**options: Any) -> Callable[[Function], Function]:
    """The same with options of `numba.njit`."""
    return partial(_compiled, **options)


def compiled_as(signature: Any) -> Callable[[Function], Function]:
    """The same for arguments of these types alone: compiled when it is first called, and not once more for
    each constant or read-only array that it is called with."""

    def compile_function(function: Function) -> Function:
        return _compiled(function, signature, error_model="numpy")

    return compile_function


def _compiled(function: Function, *signature: Any, **options: Any) -> Function:
    dispatcher = numba.njit(nogil=True, boundscheck=False, **options)(function)
    if is_jitted(dispatcher):
        with suppress(
            RuntimeError
        ):  # no folder can be written to keep the result in: each process compiles anew
            kept = dispatcher._cache = KeptCode(function)
            dispatcher._compiler.compile = kept.giving_up(dispatcher._compiler.compile)
        if signature:
            _compile_when_used(dispatcher, signature)
    return cast(Function, dispatcher)


def _compile_when_used(dispatcher: Any, signatures: tuple[Any, ...]) -> None:
    """Compile for these types alone, at the first call from Python or from what is compiled.

    What only kept code calls is in that code: it is not even read from disk.
    """
    template = dispatcher.get_call_template

    def compile_all() -> None:
        with global_compiler_lock:
            if "get_call_template" in vars(dispatcher):
                for each in signatures:
                    dispatcher.compile(each)
                dispatcher.disable_compile()
                del dispatcher.get_call_template

    def compile_for_args(*arguments: Any, **named: Any) -> Any:
        """What numba calls with the arguments then: the function again, which now has its code."""
        compile_all()
        return dispatcher

    def get_call_template(arguments: Any, named: Any) -> Any:
        compile_all()
        return template(arguments, named)

    dispatcher._compile_for_args = compile_for_args
    dispatcher.get_call_template = get_call_template


class KeptCode(FunctionCache):
    """What is kept on disk of a function's code.

    numba numbers the files of a function's signatures by an index that it reads and then replaces: two
    processes that keep different signatures at once would take one number, and the one's code would later
    run as the other's. Here only one process writes in a folder at a time, and only one compiles a function:
    those that need it meanwhile, as the ranks of a training do, wait and take its code.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._turn = Turn(Path(self.cache_path) / f"{self._impl.filename_base}.lock")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for one signature: the wheel's, else what this machine keeps, else None.

        Where it is None this process has its turn to compile until `save_overload`. numba's own method first
        loads all that it compiles with, SciPy's linear algebra included, which takes longer than most of our
        loops run. Code that is compiled needs numba's runtime alone.
        """
        rtsys.initialize(target_context)
        found = self._load_shipped(sig, target_context) or self._load_overload(sig, target_context)
        if found is None and self._turn.begin():
            found = self._load_overload(sig, target_context)  # another process may have kept it meanwhile
            if found is not None:
                self._turn.end()
        return found

    def _load_shipped(self, sig: Any, target_context: Any) -> Any:
        folder = SHIPPED_CODE / str(self._py_func.__module__)
        if not folder.is_dir() or not runs_shipped_code():
            return None
        locator = self._impl.locator
        shipped = IndexDataCacheFile(str(folder), self._impl.filename_base, locator.get_source_stamp())
        signature, (system, *_), code = self._index_key(sig, target_context.codegen())
        data = shipped.load((signature, (system, *SHIPPED_CPU), code))
        return None if data is None else self._impl.rebuild(target_context, data)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for one signature; a full disk is no reason to fail."""
        try:
            with suppress(OSError), _alone(self.cache_path):
                super().save_overload(sig, data)
        finally:
            self._turn.end()

    def giving_up(self, compiler: Function) -> Function:
        """numba's compiler for this function; where it fails, the next process has its turn.

        Args:
            compiler: Compiles the function for the types of its arguments.
        """

        def compile_or_end(*arguments: Any) -> Any:
            try:
                return compiler(*arguments)
            except BaseException:
                self._turn.end()
                raise

        return cast(Function, compile_or_end)


class Turn:
    """A lock in a file, held by the one process that compiles a function.

    It goes with the process that holds it, which those that it forks do not. Where it cannot be had, each
    process compiles for itself.
    """

    def __init__(self, path: Path) -> None:
        """Know the file of the lock.

        Args:
            path: The file, which is there while one has its turn.
        """
        self._path = path
        self._held: int | None = None
        _turns.add(self)

    def begin(self) -> bool:
        """Wait until no other process compiles the function; returns whether this one's turn has begun."""
        if self._held is not None:  # it compiles the function for other types already
            return False
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o666)
            try:
                if _is_locked(file):
                    self._held = file
            finally:
                if self._held is None:
                    os.close(file)
        return self._held is not None

    def end(self) -> None:
        """Let the next process have its turn, if this one has it."""
        if self._held is None:
            return
        with suppress(OSError):
            self._path.unlink()
        fcntl.flock(self._held, fcntl.LOCK_UN)
        self.leave()

    def leave(self) -> None:
        """Leave the turn, if there is one, to the process that this one was forked from."""
        if self._held is not None:
            os.close(self._held)
            self._held = None


_turns: WeakSet[Turn] = WeakSet()


def _leave_turns() -> None:
    for turn in _turns:
        turn.leave()


os.register_at_fork(after_in_child=_leave_turns)


def _is_locked(file: int) -> bool:
    """Lock a file once no other process holds it, or give up after `LONGEST_WAIT_S`."""
    latest = time.monotonic() + LONGEST_WAIT_S
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() >= latest:
            return False
        time.sleep(0.02)


@cache
def runs_shipped_code() -> bool:
    """Whether this processor has every instruction that the shipped code may use."""
    features = get_host_cpu_features()
    return all(features.get(name, False) for name in _NEEDED_FEATURES)


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, LOCK_NAME), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def _copy_memory(_: Any, out: Any, at: Any, data: Any, begin: Any, count: Any) -> tuple[Any, Any]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, to_place, source, source_place, length = arguments
        kinds = signature.args
        target = context.make_array(kinds[0])(context, builder, to)
        origin = context.make_array(kinds[2])(context, builder, source)
        cgutils.raw_memcpy(
            builder, builder.gep(target.data, [to_place]), builder.gep(origin.data, [source_place]), length, 1
        )
        return context.get_dummy_value()

    return types.void(out, types.intp, data, types.intp, types.intp), generate


@compiled
def grown(values: Values, room: int) -> Values:
    """Values in an array that has room for more along its first axis; C-contiguous.

    For compiled code: numba takes over a second to compile an assignment to a slice, because of the error
    that it raises where shapes differ.
    """
    wide = np.empty((room, *values.shape[1:]), values.dtype)
    flat, old = wide.reshape(-1), values.reshape(-1)
    for place in range(old.shape[0]):
        flat[place] = old[place]
    return wide  # type: ignore[return-value]  # of the values' own dtype and dimensions, which NumPy's types lose


@compiled
def by_group(
    groups: npt.NDArray[np.integer[Any]], count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Positions by the group that each belongs to, ascending in each: (start (count + 1,), positions)."""
    start = np.zeros(count + 1, np.int64)
    for group in groups:
        start[group + 1] += 1
    for at in range(count):
        start[at + 1] += start[at]
    place = start[:-1].copy()
    positions = np.empty(groups.shape[0], np.int32)
    for position in range(groups.shape[0]):
        positions[place[groups[position]]] = position
        place[groups[position]] += 1
    return start, positions


@compiled
def copy_bytes(
    out: npt.NDArray[np.uint8], at: int, data: npt.NDArray[np.uint8], begin: int, count: int
) -> None:
    """Copy `count` bytes of one contiguous array into another, which do not overlap; nothing is checked.

    For compiled code: a loop over single bytes takes several times as long.
    """
    _copy_memory(out, at, data, begin, count)
