"""Sees every execution of a jitted computation, and every time the host waits for one.

JAX has no supported way to observe calls: its C++ fast path runs a compiled computation without Python. So
while a capture runs, the fast path is kept out (a cached call takes some 25 us longer here, outside virtual
time), and the few functions that all executions and waits go through are wrapped. Each is looked up when the
hooks go in; a JAX without one of them is refused with a sentence.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from neuron_tools.device.host.recorder import PythonRecorder
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frontends.executables import ExecutableProvider
from neuron_tools.frontends.jax.computation import Computation
from neuron_tools.frontends.jax.cores import cores_of
from neuron_tools.frontends.jax.memory import DeviceMemory
from neuron_tools.frontends.jax.pallas import refusing_pallas
from neuron_tools.frontends.jax.patches import Patches

_PACKAGE = str(Path(__file__).parents[2]) + os.sep
TESTED_VERSION = "0.10.2"

_FINISH = "_neuron_finish_ns"  # attribute of an array: device time at which it is there
_CORES = "_neuron_cores"


class UnsupportedJaxError(NeuronToolsError):
    """This version of JAX lacks something that recording needs."""


class Interception:
    """Wraps JAX's execution while it is installed.

    Args:
        recorder: Gets the executions.
        provider: Compiles and times the computations.
        memory: Told of every array that a computation makes.
    """

    def __init__(self, recorder: PythonRecorder, provider: ExecutableProvider, memory: DeviceMemory) -> None:
        self._recorder = recorder
        self._memory = memory
        self._provider = provider
        self._patches = Patches()
        self._compiled: dict[int, tuple[Any, Computation]] = {}
        self._computations: WeakKeyDictionary[Any, Computation] = WeakKeyDictionary()

    def install(self) -> None:
        """Put the wrappers in.

        Raises:
            UnsupportedJaxError: This JAX is not one that can be recorded.
        """
        import jax

        try:
            _hide_our_frames()
            self._wrap()
        except (AttributeError, ImportError) as error:
            self._patches.undo()
            raise UnsupportedJaxError(
                f"JAX {jax.__version__} cannot be recorded ({error}): install the version that Neuron Tools "
                f"was tested with, {TESTED_VERSION}."
            ) from error
        _forget_fast_paths()

    def uninstall(self) -> None:
        """Take the wrappers out."""
        self._patches.undo()

    def _wrap(self) -> None:
        from jax._src import array, compiler, pjit
        from jax._src.interpreters import mlir, pxla
        from jax._src.lib import xla_client  # type: ignore[attr-defined]  # not public

        replace = self._patches.replace
        replace(mlir, "lower_per_platform", refusing_pallas(mlir.lower_per_platform))
        replace(compiler, "compile_or_get_cached", self._compiling(compiler.compile_or_get_cached))
        replace(pjit, "_get_fastpath_data", lambda *arguments, **options: None)
        slow_path = "_run_python_pjit" if hasattr(pjit, "_run_python_pjit") else "_python_pjit_helper"
        replace(pjit, slow_path, self._unclocked(getattr(pjit, slow_path)))
        replace(pxla.MeshExecutable, "create_cpp_call", lambda executable, *arguments: None)
        batched = xla_client.batched_block_until_ready
        execute = pxla.ExecuteReplicated
        replace(execute, "__init__", self._remembering(execute.__init__))
        replace(execute, "__call__", self._executing(execute.__call__, batched))
        arrays = array.ArrayImpl
        replace(arrays, "block_until_ready", self._waiting(arrays.block_until_ready))
        replace(arrays, "_value", property(self._waiting(arrays._value.fget)))
        replace(xla_client, "batched_block_until_ready", self._waiting_for_all(batched))

    def _compiling(self, compile_module: Callable[..., Any]) -> Callable[..., Any]:
        """Keeps what XLA is given, until the computation's first execution."""

        @functools.wraps(compile_module)
        def wrapper(
            backend: Any, module: Any, devices: Any, compile_options: Any, *others: Any, **options: Any
        ) -> Any:
            def compile_it() -> Any:
                return compile_module(backend, module, devices, compile_options, *others, **options)

            with self._recorder.clock.paused():
                executable, computation = Computation.compiled(module, compile_options, compile_it)
                self._compiled[id(executable)] = (executable, computation)
            return executable

        return wrapper

    def _remembering(self, initialise: Callable[..., None]) -> Callable[..., None]:
        """Ties the object that executes to the computation."""

        @functools.wraps(initialise)
        def wrapper(execute: Any, xla_executable: Any, *arguments: Any, **options: Any) -> None:
            initialise(execute, xla_executable, *arguments, **options)
            known = self._compiled.pop(id(xla_executable), None)
            if known is not None:
                self._computations[execute] = known[1]

        return wrapper

    def _executing(
        self, run: Callable[..., Any], block: Callable[[Sequence[Any]], Any]
    ) -> Callable[..., Any]:
        """Computes the values outside virtual time, then places the execution on the device.

        XLA computes on threads of its own: `block` waits for them, so that nothing goes on beside the user's
        next line.
        """
        from jax._src.array import ArrayImpl

        @functools.wraps(run)
        def wrapper(execute: Any, *arguments: Any) -> Any:
            with self._recorder.clock.paused():
                for argument in arguments:
                    if isinstance(argument, ArrayImpl):
                        self._memory.hold(argument)
                results = run(execute, *arguments)
                # A typed PRNG key is a shell around an array.
                inner = [getattr(result, "_base_array", result) for result in results]
                arrays = [array for array in inner if isinstance(array, ArrayImpl)]
                block(arrays)
                cores = cores_of(execute._local_devices)
                stack = self._recorder.stack()
                finish_ns = self._place(execute, cores, stack)
                self._memory.release_donated(arguments)
                computation = self._computations.get(execute)
                for array in arrays:
                    self._memory.hold(array, stack, computation.name if computation else "")
            for array in arrays:
                setattr(array, _FINISH, finish_ns)
                setattr(array, _CORES, cores)
            return results

        return wrapper

    def _place(self, execute: Any, cores: Sequence[int], stack: int) -> int:
        computation = self._computations.get(execute)
        if computation is None:
            return self._recorder.finish_ns(cores)
        number, duration_ns = self._provider.executable_for(
            computation.lower, computation.key, computation.name
        )
        return self._recorder.execute(number, duration_ns, computation.name, cores, stack)

    def _waiting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Lets the host's clock reach the time at which the array is there."""

        def wrapper(array: Any, *arguments: Any) -> Any:
            self._wait([array])
            with self._recorder.clock.paused():
                return function(array, *arguments)

        return wrapper

    def _waiting_for_all(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(arrays: Any) -> Any:
            arrays = list(arrays)
            self._wait(arrays)
            with self._recorder.clock.paused():
                return function(arrays)

        return wrapper

    def _wait(self, arrays: Sequence[Any]) -> None:
        pending = [array for array in arrays if getattr(array, _FINISH, 0)]
        if not pending:
            return
        last = max(pending, key=lambda array: getattr(array, _FINISH))
        self._recorder.wait(getattr(last, _FINISH), getattr(last, _CORES))
        for array in pending:
            setattr(array, _FINISH, 0)

    def _unclocked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What JAX does in Python instead of its fast path is not the user's time."""

        @functools.wraps(function)
        def wrapper(*arguments: Any, **options: Any) -> Any:
            with self._recorder.clock.paused():
                return function(*arguments, **options)

        return wrapper


def _hide_our_frames() -> None:
    """The wrappers are not part of the user's program, in source locations and in tracebacks."""
    from jax._src import source_info_util, traceback_util

    source_info_util.register_exclusion(_PACKAGE)
    traceback_util.register_exclusion(__file__)


def _forget_fast_paths() -> None:
    """What was called before has a fast path already."""
    import jax
    from jax._src import xla_bridge

    if xla_bridge.backends_are_initialized():
        jax.clear_caches()
