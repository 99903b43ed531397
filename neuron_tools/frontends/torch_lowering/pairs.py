"""Complex tensors as the chip has them: real numbers in pairs, along one more axis of two at the end.

That is what lies in memory. torch-mlir knows no complex arithmetic, so a graph node that stands for a complex
tensor holds the pairs (`COMPLEX` in its `meta`). An operator of complex numbers is what its rule makes of the
pairs; where there is none, PyTorch's `ComplexTensor` traces it on real and imaginary parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch._decomp
from torch import fx
from torch._subclasses.complex_tensor import ComplexTensor
from torch._subclasses.complex_tensor._ops.common import lookup_complex
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from neuron_tools.frontends.torch_lowering.decompositions.complex_numbers import Pairs, interleaved
from neuron_tools.frontends.torch_lowering.decompositions.registry import COMPLEX as RULES
from neuron_tools.frontends.torch_lowering.fake import fake_tensor

_aten = torch.ops.aten

COMPLEX = "complex"
"""Key in a node's `meta`: it stands for a complex tensor, and its value is the pairs."""


def is_complex(value: Any) -> bool:
    """Whether a value is a complex tensor, number or element type."""
    if isinstance(value, torch.Tensor):
        return bool(value.is_complex())
    return isinstance(value, (complex, Pairs)) or (isinstance(value, torch.dtype) and value.is_complex)


def stored(value: Any) -> Any:
    """The (fake) pairs of a complex tensor; anything else as it is."""
    if not isinstance(value, torch.Tensor) or not value.is_complex():
        return value
    return fake_tensor((*value.shape, 2), None, value.dtype.to_real())


def value_of(node: fx.Node) -> Any:
    """The (fake) value that a node stands for."""
    value = node.meta["val"]
    if not node.meta.get(COMPLEX):
        return value
    return fake_tensor(value.shape[:-1], None, value.dtype.to_complex())


def call_on_pairs(target: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call an operator, or a function of tensors, complex ones given and returned as `Pairs`."""
    if target in RULES:
        result = RULES[target](*args, **kwargs)
        if result is not NotImplemented:
            return result
    args, kwargs = pytree.tree_map(_joined, (args, kwargs))
    with _PartsMode():
        result = target(*args, **kwargs)
    return pytree.tree_map(_separated, result)


def _joined(value: Any) -> Any:
    return ComplexTensor(value.real, value.imaginary) if isinstance(value, Pairs) else value


def _separated(value: Any) -> Any:
    return interleaved(value.re, value.im) if isinstance(value, ComplexTensor) else value


def functional_form(target: Any) -> Callable[..., Any]:
    """The operator that returns what `target` writes into its first argument, or into `out`.

    Raises:
        NotImplementedError: It has none, or writes something else.
    """
    name, overload = target._schema.name.partition("::")[2], target._overloadname
    written = [argument.is_write for argument in target._schema.arguments]
    if target._schema.arguments[-1].name == "out" and sum(written) == 1:
        return _maker(target)
    packet = getattr(_aten, name[:-1], None)
    if not name.endswith("_") or sum(written) != 1 or not written[0] or overload not in dir(packet):
        raise NotImplementedError(f"{target} on complex numbers")
    found: Callable[..., Any] = getattr(packet, overload)
    return found


def _maker(target: Any) -> Callable[..., Any]:
    """The overload that takes what `target` takes besides `out`: `mul.Tensor` of `mul.out`."""
    packet = getattr(_aten, target._schema.name.partition("::")[2])
    wanted = _taken(target)[:-1]
    for overload in packet.overloads():
        if _taken(found := getattr(packet, overload)) == wanted:
            maker: Callable[..., Any] = found
            return maker
    raise NotImplementedError(f"{target} on complex numbers")


def _taken(target: Any) -> list[tuple[str, str]]:
    return [(argument.name, str(argument.type)) for argument in target._schema.arguments]


class _PartsMode(TorchDispatchMode):
    """Lets operators on `ComplexTensor`s meet real tensors, and be decomposed where PyTorch has no rule."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call the operator, or what stands for it where complex numbers take part."""
        kwargs = kwargs or {}
        leaves, structure = pytree.tree_flatten((args, kwargs))
        if not any(map(is_complex, leaves)):
            return func(*args, **kwargs)
        if func in RULES:
            result = RULES[func](*pytree.tree_map(_separated, args), **pytree.tree_map(_separated, kwargs))
            if result is not NotImplemented:
                return pytree.tree_map(_joined, result)
        args, kwargs = pytree.tree_unflatten(list(map(_promoted, leaves)), structure)
        if lookup_complex(func) is not None:
            return func(*args, **kwargs)
        with self:
            return _decomposed(func)(*args, **kwargs)


def _decomposed(func: Any) -> Callable[..., Any]:
    found: Callable[..., Any] = torch._decomp.global_decomposition_table["post_autograd"].get(func, func)
    return found


def _promoted(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
        return ComplexTensor(leaf, torch.zeros_like(leaf))
    return leaf
