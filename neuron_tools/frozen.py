"""The decorator of the project's records: data classes that nothing changes once they are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    Record = TypeVar("Record")

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def frozen(record: type[Record]) -> type[Record]:
        """Make a data class whose instances are immutable and take no attribute beyond their fields."""

else:
    frozen = dataclass(frozen=True, slots=True)
