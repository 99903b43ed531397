"""A model whose states show: buffers that its forward pass gives new values are further results of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch


class _Noted:
    """Names, in an object: exporting puts a module's own attributes back as they were."""

    names: tuple[str, ...] = ()


class ObservedModel(torch.nn.Module):
    """Returns the model's result, and the new value of each buffer that was set anew.

    What a forward pass leaves in the model's attributes is taken away again: exporting allows buffers only.

    Args:
        model: The model.
        keywords: Names by which it takes its inputs; None: it takes them in order.
    """

    def __init__(self, model: torch.nn.Module, keywords: Sequence[str] | None = None) -> None:
        super().__init__()
        self.model = model
        self._keywords = keywords
        self._noted = _Noted()

    @property
    def set_anew(self) -> tuple[str, ...]:
        """Names of the buffers that the last forward pass set anew."""
        return self._noted.names

    def forward(self, *inputs: Any) -> tuple[Any, tuple[torch.Tensor, ...]]:
        """The model's result, and the new values of the buffers `set_anew`."""
        before = dict(self.model.named_buffers(remove_duplicate=False))
        with _as_it_was(self.model), _plain_tensors():
            result = self.model(*inputs) if self._keywords is None else self.model(**self._named(inputs))
            after = dict(self.model.named_buffers(remove_duplicate=False))
        anew = {name: value for name, value in after.items() if value is not before.get(name, value)}
        self._noted.names = tuple(anew)
        return result, tuple(anew.values())

    def _named(self, inputs: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self._keywords or (), inputs))


@contextmanager
def _as_it_was(model: torch.nn.Module) -> Iterator[None]:
    """Give all modules the attributes and buffers back that they had before the block."""
    had = [(module, dict(module.__dict__), dict(module._buffers)) for module in model.modules()]
    try:
        yield
    finally:
        for module, attributes, buffers in had:
            module._buffers.update(buffers)
            for name in module.__dict__.keys() - attributes.keys():
                del module.__dict__[name]
            module.__dict__.update(attributes)


_as_subclass = torch.Tensor.as_subclass
_exporting: list[int] = []
"""Threads in a block of `_plain_tensors`, as often as they are in one."""
_entry = threading.Lock()


def _as_it_is(tensor: torch.Tensor, kind: type) -> Any:
    is_plain = threading.get_ident() in _exporting and isinstance(tensor, kind)
    return tensor if is_plain else _as_subclass(tensor, kind)


@contextmanager
def _plain_tensors() -> Iterator[None]:
    """Let `as_subclass(torch.Tensor)` return the tensor itself: exporting does not see what PyTorch makes.

    No mode of PyTorch sees the call, so the method is replaced until the last thread that exports is done; in
    others it does as ever.
    """
    thread = threading.get_ident()
    with _entry:
        _exporting.append(thread)
        torch.Tensor.as_subclass = _as_it_is
    try:
        yield
    finally:
        with _entry:
            _exporting.remove(thread)
            if not _exporting:
                del torch.Tensor.as_subclass
