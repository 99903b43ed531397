"""Copies between the host and the device: NumPy arrays that JAX takes, and arrays whose values are read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from neuron_tools.device.host.recorder import PythonRecorder
from neuron_tools.frontends.jax.cores import core_of, cores_of
from neuron_tools.frontends.jax.memory import DeviceMemory
from neuron_tools.frontends.jax.patches import Patches

_READ = "_neuron_read"  # attribute of an array whose values the host has


class Transfers:
    """Records copies while it is installed.

    Args:
        recorder: Gets the copies.
        memory: Told of the arrays that copies make.
    """

    def __init__(self, recorder: PythonRecorder, memory: DeviceMemory) -> None:
        self._recorder = recorder
        self._memory = memory
        self._patches = Patches()

    def install(self) -> None:
        """Put the wrappers in; without the functions that they wrap, copies are not seen."""
        try:
            from jax._src import array, dispatch
            from jax._src.interpreters import pxla

            self._patches.replace(pxla, "batched_device_put", self._putting(pxla.batched_device_put))
            for owner, name in ((dispatch.device_put_p, "impl"), (dispatch, "_batched_device_put_impl")):
                if hasattr(owner, name):
                    self._patches.replace(owner, name, self._holding(getattr(owner, name)))
            arrays: Any = array.ArrayImpl
            self._patches.replace(arrays, "_value", property(self._reading(arrays._value.fget)))
        except (AttributeError, ImportError):
            self._patches.undo()

    def uninstall(self) -> None:
        """Take the wrappers out."""
        self._patches.undo()

    def _putting(self, put: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(put)
        def wrapper(
            aval: Any, sharding: Any, parts: Any, devices: Any, *arguments: Any, **options: Any
        ) -> Any:
            with self._recorder.clock.paused():
                result = put(aval, sharding, parts, devices, *arguments, **options)
            for part, device in zip(parts, devices):
                if isinstance(part, np.ndarray):
                    self._recorder.copy_to_device(part.nbytes, core_of(device))
            return result

        return wrapper

    def _holding(self, put: Callable[..., Any]) -> Callable[..., Any]:
        """Notes the arrays that `jax.device_put` and its like give to the program."""
        from jax._src.array import ArrayImpl

        @functools.wraps(put)
        def wrapper(*arguments: Any, **options: Any) -> Any:
            results = put(*arguments, **options)
            with self._recorder.clock.paused():
                for result in results if isinstance(results, (list, tuple)) else [results]:
                    if isinstance(result, ArrayImpl):
                        self._memory.hold(result, maker="device_put")
            return results

        return wrapper

    def _reading(self, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def wrapper(array: Any) -> Any:
            first = not getattr(array, _READ, False)
            value = read(array)
            setattr(array, _READ, True)
            if first and array.sharding.addressable_devices:
                core = cores_of(array.sharding.addressable_devices)[0]
                self._recorder.copy_to_host(array.nbytes, core)
            return value

        return wrapper
