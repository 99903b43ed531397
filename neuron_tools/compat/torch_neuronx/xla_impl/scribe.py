"""The builder of HLO with which libraries write functions for `xla_hlo_call`, in PyTorch's operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from neuron_tools.compat.absent import AbsentError
from neuron_tools.compat.torch_neuronx.xla_impl.custom_call_targets import MARKERS

_TYPES: Mapping[str, torch.dtype] = {
    "pred": torch.bool, "s8": torch.int8, "s16": torch.int16, "s32": torch.int32, "s64": torch.int64,
    "u8": torch.uint8, "u16": torch.int32, "u32": torch.int64, "u64": torch.int64,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
}  # fmt: skip
"""HLO's element types; unsigned ones that PyTorch computes little with are wider signed ones."""


class Scribe:
    """Gives element types by their names in HLO, such as `scribe.f32`."""

    def __getattr__(self, name: str) -> ElementType:
        if name not in _TYPES:
            raise AttributeError(f"HLO has no element type {name!r} here; it has {', '.join(_TYPES)}")
        return ElementType(_TYPES[name])

    def tuple(self, *values: Value) -> TupleType:
        """The type of several results, as these are."""
        return TupleType()


class TupleType:
    """Makes operations of several results."""

    def CustomCall(self, *operands: Value, custom_call_target: str, **others: Any) -> tuple[Value, ...]:
        """The operands, between which and what follows there is a marker.

        Raises:
            AbsentError: The target is no marker.
        """
        if custom_call_target not in MARKERS:
            raise AbsentError(
                f"The custom call {custom_call_target}, which a function of xla_hlo_call builds, is not "
                "there: write it in PyTorch's operators."
            )
        return operands


class Value:
    """A tensor in such a function.

    Args:
        tensor: The tensor.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    @property
    def scribe(self) -> Scribe:
        """What gives element types."""
        return Scribe()

    @property
    def dtype(self) -> ElementType:
        """Its element type."""
        return ElementType(self.tensor.dtype)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Its extents."""
        return tuple(self.tensor.shape)

    def CustomCall(self, operand: Value, custom_call_target: str, **others: Any) -> Value:
        """The same of one operand, whose result is as this is."""
        return TupleType().CustomCall(operand, custom_call_target=custom_call_target)[0]


class ElementType:
    """An element type; with extents in brackets it makes operations of that result.

    Args:
        dtype: The same in PyTorch.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        self.torch_dtype = dtype

    def __getitem__(self, sizes: int | Sequence[int]) -> ResultType:
        return ResultType(self.torch_dtype, (sizes,) if isinstance(sizes, int) else tuple(sizes))

    def __getattr__(self, name: str) -> Callable[..., Value]:
        return getattr(ResultType(self.torch_dtype, ()), name)  # type: ignore[no-any-return]  # a method

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ElementType) and self.torch_dtype == other.torch_dtype

    def __hash__(self) -> int:
        return hash(self.torch_dtype)


class ResultType:
    """Makes operations by their names in HLO.

    Args:
        dtype: Element type of their result.
        sizes: Extents of it.
    """

    def __init__(self, dtype: torch.dtype, sizes: tuple[int, ...]) -> None:
        self._dtype, self._sizes = dtype, sizes

    def __getattr__(self, name: str) -> Callable[..., Value]:
        raise AbsentError(
            f"HLO's operation {name}, which a function of xla_hlo_call builds, is not there: write it in "
            "PyTorch's operators."
        )

    def Constant(self, constant_value: Any) -> Value:
        """A number, or numbers, everywhere."""
        if isinstance(constant_value, (bool, int, float)):
            return Value(torch.full(self._sizes, constant_value, dtype=self._dtype))
        return Value(torch.tensor(constant_value, dtype=self._dtype).reshape(self._sizes))

    def DynamicUpdateSlice(self, operand: Value, update: Value, *starts: Value) -> Value:
        """The operand with an update written at a place that is moved inside where it would stand out."""
        own = [_rows(operand.tensor, update.tensor, dim, start.tensor) for dim, start in enumerate(starts)]
        partial = [dim for dim, (size, part) in enumerate(zip(operand.sizes, update.sizes)) if size != part]
        if not partial:
            return Value(update.tensor.clone())
        if len(partial) == 1:
            return Value(operand.tensor.index_copy(partial[0], own[partial[0]], update.tensor))
        return Value(operand.tensor.index_put(torch.meshgrid(own, indexing="ij"), update.tensor))

    def Slice(self, operand: Value, slice_dimensions: Sequence[Mapping[str, int]]) -> Value:
        """Stretches along each dimension: `start`, `limit`, `stride`."""
        stretches = [slice(each["start"], each["limit"], each.get("stride", 1)) for each in slice_dimensions]
        return Value(operand.tensor[tuple(stretches)])

    def Concatenate(self, *operands: Value, dimensions: Sequence[int]) -> Value:
        """Tensors one after the other."""
        return Value(torch.cat([each.tensor for each in operands], dimensions[0]))

    def Reshape(self, operand: Value) -> Value:
        """The same elements with other extents."""
        return Value(operand.tensor.reshape(self._sizes))

    def Transpose(self, operand: Value, dimensions: Sequence[int]) -> Value:
        """Dimensions in another order."""
        return Value(operand.tensor.permute(*dimensions))

    def Convert(self, operand: Value) -> Value:
        """The same values in another element type."""
        return Value(operand.tensor.to(self._dtype))

    def Add(self, left: Value, right: Value) -> Value:
        """Sums."""
        return Value(left.tensor + right.tensor)

    def Multiply(self, left: Value, right: Value) -> Value:
        """Products."""
        return Value(left.tensor * right.tensor)

    def Rng(self, low: Value, high: Value, distribution: int = 1) -> Value:
        """Random numbers: evenly distributed from low to high, or normal (2) of that mean and deviation."""
        if distribution == 1:
            evenly = torch.rand(self._sizes, dtype=self._dtype, device=low.tensor.device)
            return Value(low.tensor + evenly * (high.tensor - low.tensor))
        normal = torch.randn(self._sizes, dtype=self._dtype, device=low.tensor.device)
        return Value(low.tensor + normal * high.tensor)


def _rows(operand: torch.Tensor, update: torch.Tensor, dim: int, start: torch.Tensor) -> torch.Tensor:
    """Where an update stands along a dimension."""
    most = operand.shape[dim] - update.shape[dim]
    first = start.reshape(()).to(device=operand.device, dtype=torch.int64).clamp(0, most)
    return first + torch.arange(update.shape[dim], device=operand.device)


def built(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors that does what a function of `Value`s builds."""

    def run(*arguments: Any, **options: Any) -> Any:
        given = pytree.tree_map_only(torch.Tensor, Value, (arguments, options))
        return pytree.tree_map_only(Value, lambda made: made.tensor, function(*given[0], **given[1]))

    return run
