"""FlexAttention on `neuron`, eager and compiled: PyTorch lets it run on the devices that it knows only.

Eagerly it computes with the device's own operators. In a graph it becomes those of `masked_attention` when
the graph is made functional.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import torch

from neuron_tools.frontends.torch_compile import masked_attention
from neuron_tools.frontends.torch_compile.admission import admit
from neuron_tools.frontends.torch_compile.masked_attention import OPERATORS
from neuron_tools.late_import import after_import

_API = "torch.nn.attention.flex_attention"
_AUTOCAST = torch._C.DispatchKey.AutocastPrivateUse1


def allow() -> None:
    """Let `flex_attention` take tensors on the device, as soon as a program imports it."""
    after_import(_API, _allow)


def _allow() -> None:
    admit(import_module(_API)._validate_device, "neuron")
    operators = import_module(OPERATORS)
    for operator, kernel in (
        (operators.flex_attention, _cast),
        (operators.flex_attention_backward, partial(_without_autocast, operators.flex_attention_backward)),
    ):
        if _AUTOCAST not in operator.py_kernels:
            operator.py_impl(_AUTOCAST)(kernel)


def _cast(query: Any, key: Any, value: Any, *others: Any, **options: Any) -> Any:
    """The operator under autocast: as its own for other devices, in autocast's type."""
    dtype = torch.get_autocast_dtype("neuron")
    cast = (
        tensor.to(dtype) if tensor.is_floating_point() and tensor.dtype != torch.float64 else tensor
        for tensor in (query, key, value)
    )
    return _without_autocast(import_module(OPERATORS).flex_attention, *cast, *others, **options)


def _without_autocast(operator: Any, *args: Any, **options: Any) -> Any:
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(_AUTOCAST)):
        return operator(*args, **options)


@contextmanager
def taken_apart() -> Iterator[None]:
    """Trace within it: the operator and its gradient become the operators that they consist of."""
    from torch._subclasses.functional_tensor import FunctionalTensorMode

    operators = import_module(OPERATORS)
    pairs = (
        (operators.flex_attention, masked_attention.forward),
        (operators.flex_attention_backward, masked_attention.backward),
    )
    saved = [operator.python_key_table.get(FunctionalTensorMode) for operator, _ in pairs]
    try:
        for operator, function in pairs:
            _set(operator, FunctionalTensorMode, _within_mode(function))
        yield
    finally:
        for (operator, _), kernel in zip(pairs, saved, strict=True):
            _set(operator, FunctionalTensorMode, kernel)


def _within_mode(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(mode: Any, *args: Any, **options: Any) -> Any:
        with mode:
            return function(*args, **options)

    return run


def _set(operator: Any, mode: type, kernel: Any) -> None:
    if kernel is None:
        operator.python_key_table.pop(mode, None)
    else:
        operator.python_key_table[mode] = kernel
    operator._dispatch_cache.clear()
