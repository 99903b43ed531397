"""Tensors on the device `xla`: each stands for a tensor on `neuron`, and for a recorded value."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, TypeVar

import torch
from torch import _utils

from neuron_tools.device import native
from neuron_tools.frontends.torch_xla.sharding import Sharding

DEVICE = torch.device("xla", 0)
Wrapped = TypeVar("Wrapped", bound="XlaTensor")
Dispatcher = Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]
"""Records an operator with its arguments."""


@cache
def neuron_device() -> torch.device:
    """The device below: the NeuronCore of this process, also in threads of which another one is current."""
    return torch.device("neuron", int(native.core().current_device()))


class Parts(list[torch.Tensor]):
    """What each NeuronCore has of a value."""

    __slots__ = ("__weakref__",)


class LazyValue:
    """What a tensor holds.

    Attributes:
        inner: The same tensor on the `neuron` device; its values are there at once, its time is not.
        graph: Number of the recorded graph that knows the value.
        number: Its number in that graph.
        sharding: How it lies over the cores of a partitioned program; None where nobody has said so.
        parts: What these have of it; None where they have nothing yet.
        by_core: Values of each core, where the program computes each core's part by itself; `inner` is the
            first one's then. None for one value of all.
    """

    __slots__ = ("__weakref__", "by_core", "graph", "inner", "number", "parts", "sharding")

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner
        self.graph = -1
        self.number = -1
        self.sharding: Sharding | None = None
        self.parts: Parts | None = None
        self.by_core: list[torch.Tensor] | None = None

    @classmethod
    def of_cores(cls, values: Sequence[torch.Tensor]) -> LazyValue:
        """What holds a value of each core."""
        made = cls(values[0])
        made.by_core = list(values)
        return made

    def renamed(self) -> LazyValue:
        """The same values under another number."""
        return LazyValue(self.inner) if self.by_core is None else LazyValue.of_cores(self.by_core)

    def on(self, core: int) -> torch.Tensor:
        """The values that a core computes with."""
        return self.inner if self.by_core is None else self.by_core[core]


class XlaTensor(torch.Tensor):
    """A tensor whose operations are recorded. Tensors that are aliases in all respects share a value."""

    lazy: LazyValue
    dispatcher: ClassVar[Dispatcher]
    """Does one operation; set when the device is registered."""

    @staticmethod
    def __new__(cls: type[XlaTensor], lazy: LazyValue, dtype: torch.dtype | None = None) -> XlaTensor:
        """A tensor of a value; `dtype` is what the program sees, where that is not what the device has."""
        tensor = cls._shell(lazy, dtype)
        tensor.lazy = lazy
        return tensor

    @classmethod
    def _shell(cls: type[Wrapped], lazy: LazyValue, dtype: torch.dtype | None) -> Wrapped:
        """A tensor that looks like a value, and has none yet."""
        inner = lazy.inner
        tensor: Wrapped = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=dtype or inner.dtype,
            device=DEVICE,
        )
        return tensor

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(
        cls,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Record an operation on such tensors."""
        return cls.dispatcher(func, args, kwargs or {})

    @property
    def data(self) -> torch.Tensor:
        """The tensor without its history."""
        return torch.Tensor.data.__get__(self)

    @data.setter
    def data(self, new: torch.Tensor) -> None:
        torch.Tensor.data.__set__(self, new)
        if isinstance(new, XlaTensor):
            self.lazy = new.lazy

    def __repr__(self, **options: Any) -> str:
        """The values, as PyTorch prints them; this runs what was recorded."""
        text = repr(self.detach().cpu())
        suffix = f", device='{self.device}'"
        if self.grad_fn is not None:
            suffix += f", grad_fn=<{type(self.grad_fn).__name__}>"
        elif self.requires_grad:
            suffix += ", requires_grad=True"
        return f"{text[:-1]}{suffix})"

    def tolist(self) -> Any:
        """The values as Python numbers, in lists where there are dimensions."""
        return self.detach().cpu().tolist()

    def __coerce_same_metadata_as_tangent__(self, metadata: Any, expected: type | None = None) -> XlaTensor:
        """The gradient for a graph that AOTAutograd made: to Dynamo these are plain tensors."""
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickled as PyTorch pickles tensors of devices that it does not know."""
        if isinstance(self, torch.nn.Parameter):
            return (_utils._rebuild_parameter, (self.detach(), self.requires_grad, OrderedDict()))
        arguments = (self.detach().cpu(), self.dtype, str(self.device), self.requires_grad)
        return (_utils._rebuild_device_tensor_from_cpu_tensor, arguments)
