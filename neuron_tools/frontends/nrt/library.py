"""The library's functions, with the C types of AWS's `nrt.h`, and the statuses that they return.

Types of elements have the numbers of AWS's runtime developer guide, which programs without `nrt.h` use.
"""

from __future__ import annotations

import ctypes
import sys
import traceback
from collections.abc import Callable
from ctypes import (
    POINTER,
    Structure,
    c_char,
    c_char_p,
    c_int,
    c_int32,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

from neuron_tools.errors import NeuronToolsError
from neuron_tools.frontends.nrt.runtime import HandleError, Handles, Model, ModelTensor
from neuron_tools.neff import Neff

SUCCESS, FAILURE, INVALID_HANDLE = 0, 1, 3
_DTYPES = {
    "float32": 1, "float16": 2, "bfloat16": 3, "int8": 4, "uint8": 5, "int16": 6, "uint16": 7, "int32": 8,
    "uint32": 9, "int64": 10, "uint64": 11,
}  # fmt: skip
_NAME_BYTES = 256
_OUT = POINTER(c_void_p)
_handles = Handles()
_infos: dict[int, Any] = {}
"""Descriptions of models' tensors by their address. Like handles they are the process's: a program may load
the library twice."""


class TensorInfo(Structure):
    """`nrt_tensor_info_t`: one tensor of a model."""

    _fields_ = (
        ("name", c_char * _NAME_BYTES), ("usage", c_int), ("size", c_size_t), ("dtype", c_int),
        ("shape", POINTER(c_uint32)), ("ndim", c_uint32),
    )  # fmt: skip


class TensorSet(dict[str, bytearray]):
    """Bytes of tensors by name."""


class RuntimeLibrary:
    """What `ctypes.CDLL` gives for the library: its functions as attributes, as C functions."""

    def __init__(self) -> None:
        self._handles = _handles
        for name, (takes, function) in self._functions().items():
            setattr(self, name, ctypes.CFUNCTYPE(c_int, *takes)(_with_status(function)))

    def _functions(self) -> dict[str, tuple[tuple[Any, ...], Callable[..., None]]]:
        """C types of the arguments, and what runs, by the name of the function."""
        tensor = (c_void_p, c_void_p, c_size_t, c_size_t)
        return {
            "nrt_init": ((c_int, c_char_p, c_char_p), lambda *_: None),
            "nrt_close": ((), _close),
            "nrt_load": ((c_void_p, c_size_t, c_int32, c_int32, _OUT), self._load),
            "nrt_unload": ((c_void_p,), self._handles.drop),
            "nrt_get_model_tensor_info": ((c_void_p, _OUT), self._tensor_info),
            "nrt_free_model_tensor_info": ((c_void_p,), lambda info: _infos.pop(info, None)),
            "nrt_allocate_tensor_set": ((_OUT,), lambda out: self._give(out, TensorSet())),
            "nrt_destroy_tensor_set": ((_OUT,), lambda held: self._handles.drop(held[0])),
            "nrt_tensor_allocate": ((c_int, c_int, c_size_t, c_char_p, _OUT), self._allocate),
            "nrt_tensor_free": ((_OUT,), lambda held: self._handles.drop(held[0])),
            "nrt_tensor_write": (tensor, self._write),
            "nrt_tensor_read": (tensor, self._read),
            "nrt_add_tensor_to_tensor_set": ((c_void_p, c_char_p, c_void_p), self._add),
            "nrt_execute": ((c_void_p, c_void_p, c_void_p), self._execute),
        }

    def _give(self, out: Any, held: Any) -> None:
        out[0] = self._handles.add(held)

    def _load(self, data: int, size: int, _core: int, _cores: int, model: Any) -> None:
        self._give(model, Model(Neff.from_bytes(ctypes.string_at(data, size))))

    def _tensor_info(self, model: int, out: Any) -> None:
        loaded = self._handles.get(model, Model)
        tensors = [*loaded.inputs, *loaded.outputs]
        info = _info_array(len(tensors))(len(tensors))
        for place, tensor in zip(info.tensors, tensors):
            _describe(place, tensor)
        _infos[ctypes.addressof(info)] = info
        out[0] = ctypes.addressof(info)

    def _allocate(self, _placement: int, _core: int, size: int, _name: bytes, out: Any) -> None:
        self._give(out, bytearray(size))

    def _write(self, tensor: int, source: int, offset: int, size: int) -> None:
        self._part(tensor, offset, size)[:] = ctypes.string_at(source, size)

    def _read(self, tensor: int, target: int, offset: int, size: int) -> None:
        ctypes.memmove(target, bytes(self._part(tensor, offset, size)), size)

    def _part(self, tensor: int, offset: int, size: int) -> memoryview:
        """Bytes of a tensor: never past its end, where other memory of this process stands."""
        held = self._handles.get(tensor, bytearray)
        if offset + size > len(held):
            raise HandleError(
                f"Bytes {offset} to {offset + size} are not all in a tensor of {len(held)}: write and read "
                "inside it, or allocate a larger one."
            )
        return memoryview(held)[offset : offset + size]

    def _add(self, tensors: int, name: bytes, tensor: int) -> None:
        self._handles.get(tensors, TensorSet)[name.decode()] = self._handles.get(tensor, bytearray)

    def _execute(self, model: int, given: int, results: int) -> None:
        held = self._handles
        held.get(model, Model).execute(held.get(given, TensorSet), held.get(results, TensorSet))


def _close() -> None:
    _handles.clear()
    _infos.clear()


def _info_array(count: int) -> type[Any]:
    """`nrt_tensor_info_array_t` of so many tensors."""
    fields = (("tensor_count", c_uint64), ("tensors", TensorInfo * count))
    return type("TensorInfoArray", (Structure,), {"_fields_": fields})


def _describe(place: TensorInfo, tensor: ModelTensor) -> None:
    shape = tensor.form.shape
    place.name, place.usage, place.size = tensor.name.encode(), tensor.usage, tensor.bytes
    place.dtype = _DTYPES.get(str(tensor.form.dtype), _DTYPES["uint8"])
    place.shape, place.ndim = (c_uint32 * len(shape))(*shape), len(shape)


def _with_status(function: Callable[..., Any]) -> Callable[..., int]:
    """A function that tells by a status what went wrong, as no error passes through C."""

    def called(*arguments: Any) -> int:
        try:
            function(*arguments)
        except HandleError as error:
            print(f"libnrt: {error}", file=sys.stderr)
            return INVALID_HANDLE
        except NeuronToolsError as error:
            print(f"libnrt: {error}", file=sys.stderr)
            return FAILURE
        except Exception:  # the edge to C, which would lose it
            traceback.print_exc()
            return FAILURE
        return SUCCESS

    return called
