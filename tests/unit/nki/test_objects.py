"""Classes of kernels: the initializer that the language guide describes, with and without @dataclass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from neuron_tools.nki import language as nl


@dataclass
class Section(nl.NKIObject):
    """Fields without annotations beside one with."""

    index = None
    offset: int = 3
    parts: list[int] = field(default_factory=list)
    UNIT: ClassVar[int] = 4


def test_unannotated_fields_are_parameters() -> None:
    section = Section(index=2)  # type: ignore[call-arg]
    assert (section.index, section.offset, section.parts, section.UNIT) == (2, 3, [], 4)
    assert Section().parts is not section.parts


def test_missing_values_are_none_without_dataclass() -> None:
    class Pair(nl.NKIObject):
        first: int
        second: int = 5

    pair = Pair(1)  # type: ignore[call-arg]
    assert (pair.first, pair.second, Pair().first) == (1, 5, None)


def test_own_initializer_and_methods_stay() -> None:
    class Scaled(nl.NKIObject):
        factor: int = 1

        def __init__(self, factor: int) -> None:
            self.factor = 2 * factor

        def twice(self) -> int:
            return 2 * self.factor

    assert Scaled(3).twice() == 12


def test_post_init_runs_and_fields_are_inherited() -> None:
    class Base(nl.NKIObject):
        size: int = 2

    class Derived(Base):
        total: int = 0

        def __post_init__(self) -> None:
            self.total = 3 * self.size

    assert Derived(size=4).total == 12  # type: ignore[call-arg]


def test_frozen_dataclass() -> None:
    @dataclass(frozen=True)
    class Frozen(nl.NKIObject):
        width: int = 7

    assert Frozen(width=8).width == 8


def test_unknown_field_is_named() -> None:
    with pytest.raises(TypeError, match="'lenght' is not one; it has offset"):
        Section(lenght=1)  # type: ignore[call-arg]
