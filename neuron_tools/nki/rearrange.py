"""`NkiTensor.rearrange`: dimensions split, reordered and merged by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.errors import NkiValidationError

Group = str | tuple[str, ...]


class Arrangeable(Protocol):
    """A tensor whose dimensions can be split, reordered and merged."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Size of each dimension."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""

    def reshape_dim(self: Own, dim: int, shape: Sequence[int]) -> Own:
        """One dimension split."""

    def permute(self: Own, *order_given: Any) -> Own:
        """The dimensions in another order."""

    def flatten_dims(self: Own, start_dim: int, end_dim: int) -> Own:
        """Neighbouring dimensions merged."""


Own = TypeVar("Own", bound=Arrangeable)


def rearranged(tensor: Own, source: Any, target: Any, sizes: Mapping[str, int]) -> Own:
    """The view that the pattern describes.

    Args:
        tensor: What is rearranged.
        source: Names of the tensor's dimensions, those that are split in tuples; or the whole pattern as
            text, "p (a b) -> p b a".
        target: Names of the result's dimensions, those that are merged in tuples.
        sizes: Sizes by name.

    Raises:
        NkiValidationError: The names do not match the dimensions.
    """
    if isinstance(source, str):
        left, right = source.split("->")
        source, target = _parsed(left), _parsed(right)
    source, target = tuple(source), tuple(target)
    if len(source) != tensor.ndim:
        raise NkiValidationError(
            f"the pattern {source} names {len(source)} dimensions, the tensor has shape {tensor.shape}",
            tracing.where(),
        )
    view = tensor
    for dim in reversed(range(len(source))):
        group = source[dim]
        if isinstance(group, tuple):
            view = view.reshape_dim(dim, tuple(int(sizes.get(name, -1)) for name in group))
    flat_source, flat_target = _flat(source), _flat(target)
    if sorted(flat_source) != sorted(flat_target):
        raise NkiValidationError(f"{flat_source} and {flat_target} do not name the same", tracing.where())
    view = view.permute(tuple(flat_source.index(name) for name in flat_target))
    for dim, group in enumerate(target):
        if isinstance(group, tuple) and len(group) > 1:
            view = view.flatten_dims(dim, dim + len(group) - 1)
    return view


def _parsed(text: str) -> tuple[Group, ...]:
    found = re.findall(r"\(([^)]*)\)|(\S+)", text)
    return tuple(tuple(group.split()) if group else name for group, name in found)


def _flat(groups: Sequence[Group]) -> list[str]:
    names: list[str] = []
    for group in groups:
        names.extend(group) if isinstance(group, tuple) else names.append(group)
    return names
