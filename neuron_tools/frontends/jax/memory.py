"""Device memory of a JAX program over time: arrays take it when they are made, and give it back."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from typing import Any

from neuron_tools.device.host.recorder import PythonRecorder
from neuron_tools.frontends.jax.cores import cores_of

ALIGNMENT = 64


@dataclass(slots=True)
class Held:
    """A buffer on each of its cores, and the ids of the arrays that share it."""

    address: int
    byte_count: int
    cores: tuple[int, ...]
    arrays: set[int] = field(default_factory=set)


class DeviceMemory:
    """Records what arrays hold. Safe to use from several threads.

    Args:
        recorder: Gets the records.
    """

    def __init__(self, recorder: PythonRecorder) -> None:
        self._recorder = recorder
        self._buffers: dict[int, Held] = {}
        self._buffer_of: dict[int, int] = {}
        self._references: dict[int, weakref.KeyedRef[int, Any]] = {}
        self._next_address = ALIGNMENT
        self._lock = threading.RLock()

    def hold(self, array: Any, stack: int | None = None, maker: str = "") -> None:
        """Note an array that is on the device; one that is known, or whose memory is, changes nothing.

        Args:
            array: The array.
            stack: Number of the stack that made it; None: the calling thread's.
            maker: Name of the computation that made it.
        """
        key = id(array)
        if key in self._buffer_of:
            return
        size = prod(array.sharding.shard_shape(array.shape)) * array.dtype.itemsize
        cores = tuple(cores_of(array.sharding.addressable_devices))
        if not size or not cores:
            return
        pointer = _pointer(array, cores)
        with self._lock:
            held = self._buffers.get(pointer)
            if held is None:
                held = self._buffers[pointer] = Held(self._next_address, size, cores)
                self._next_address += -(-size // ALIGNMENT) * ALIGNMENT
                for core in cores:
                    self._recorder.memory(size, held.address, core, stack=stack, name=maker)
            held.arrays.add(key)
            self._buffer_of[key] = pointer
            self._references[key] = weakref.KeyedRef(array, self._drop, key)

    def release_donated(self, arrays: Iterable[Any]) -> None:
        """Note that arrays which a computation was given for good are gone."""
        for array in arrays:
            pointer = self._buffer_of.get(id(array))
            if pointer is not None and array.is_deleted():
                self._free(pointer)

    def _drop(self, reference: weakref.KeyedRef[int, Any]) -> None:
        key = reference.key
        with self._lock:
            # A released array's id may be another array's by now.
            if self._references.get(key) is not reference:
                return
            del self._references[key]
            pointer = self._buffer_of.pop(key, None)
            held = self._buffers.get(pointer) if pointer is not None else None
            if held is None or pointer is None:
                return
            held.arrays.discard(key)
            if not held.arrays:
                self._free(pointer)

    def _free(self, pointer: int) -> None:
        with self._lock:
            held = self._buffers.pop(pointer, None)
            if held is None:
                return
            for key in held.arrays:
                self._buffer_of.pop(key, None)
        for core in held.cores:
            self._recorder.memory(held.byte_count, held.address, core, freed=True)


def _pointer(array: Any, cores: tuple[int, ...]) -> int:
    """What tells an array's memory apart; arrays over several cores have none of their own to show."""
    return int(array.unsafe_buffer_pointer()) if len(cores) == 1 else -id(array)
