"""Parts that look whole, but whose data cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from neuron_tools.errors import NeuronToolsError


class DamagedProfileError(NeuronToolsError):
    """A part looks whole, but its data cannot be read."""


@contextmanager
def reading(place: Path, *further: type[Exception]) -> Iterator[None]:
    """Turn the errors of what reads inside into one sentence for the user.

    Args:
        place: What is read.
        further: Further classes of errors that tell of damage.

    Raises:
        DamagedProfileError: It cannot be read.
    """
    try:
        yield
    except (pa.ArrowException, OSError, *further) as error:
        reason = (
            str(error).strip().splitlines()[0].rstrip(" .") if str(error).strip() else type(error).__name__
        )
        raise DamagedProfileError(
            f"{place} cannot be read ({reason}): it is damaged. Restore it, or remove it to see the rest."
        ) from error
