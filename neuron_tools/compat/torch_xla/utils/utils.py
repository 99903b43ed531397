"""What programs use of `torch_xla.utils.utils`: a loader of made-up samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class SampleGenerator:
    """Gives the same batch again and again.

    Args:
        data: The batch.
        sample_count: How often.
    """

    def __init__(self, data: Any, sample_count: int) -> None:
        self._data = data
        self._sample_count = sample_count

    def __iter__(self) -> Iterator[Any]:
        return iter(self._data for _ in range(self._sample_count))

    def __len__(self) -> int:
        return self._sample_count
