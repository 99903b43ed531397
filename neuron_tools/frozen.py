"""The decorator of the project's records: immutable data classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    Record = TypeVar("Record")

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def frozen(record: type[Record]) -> type[Record]:
        """Make a data class whose instances are immutable and have slots."""

else:
    frozen = dataclass(frozen=True, slots=True)
