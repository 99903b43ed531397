"""Whether two runs of a program computed the same: what its globals hold, and the numbers that it prints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_profile.closeness import largest_difference
from neuron_tools.frozen import frozen

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


@frozen
class RunValues:
    """What one run left behind.

    Attributes:
        arrays: By path from the program's globals.
        printed: Its standard output.
    """

    arrays: Mapping[str, npt.NDArray[np.float64]]
    printed: str


@frozen
class Agreement:
    """How far two runs agree.

    Attributes:
        compared: How many values of both were compared.
        difference: The largest difference, relative to the largest magnitude of its array.
        where: What differs most.
        tolerance: The difference that is allowed.
    """

    compared: int
    difference: float
    where: str
    tolerance: float

    @property
    def equal(self) -> bool:
        """Whether anything was compared and nothing differs by more than is allowed."""
        return self.compared > 0 and self.difference <= self.tolerance


def compare_values(before: RunValues, after: RunValues, tolerance: float) -> Agreement:
    """Compare what both runs have; what only one has is a help of the edit's, and left out."""
    pairs: list[tuple[str, Any, Any]] = [
        (name, array, after.arrays[name]) for name, array in before.arrays.items() if name in after.arrays
    ]
    printed = [np.array([float(text) for text in _NUMBER.findall(run.printed)]) for run in (before, after)]
    if printed[0].size or printed[1].size:
        pairs.append(("what it prints", printed[0], printed[1]))
    worst, where, compared = 0.0, "", 0
    for name, old, new in pairs:
        compared += old.size
        difference = largest_difference([new], [old])
        if difference > worst:
            worst, where = difference, name
    return Agreement(compared, worst, where, tolerance)
