"""Makes chosen instructions and transfers of a Program faster or slower: what a fix of them would give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuron_tools.records.program import Program
from neuron_tools.records.rows import copied

if TYPE_CHECKING:
    from neuron_tools.simulator.kernel import Work

Factors = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CostScale:
    """Factors on the costs of a Program's rows; 0 makes a row free, 1 leaves it as it is.

    Attributes:
        instructions: (instructions,) on issue interval and latency.
        dmas: (dmas,) on the transfer or collective, its start-up and the delay before it.
        second: Those of the second physical core's Program where that is another one; None: they are all 1.
    """

    instructions: Factors
    dmas: Factors
    second: CostScale | None = None

    @classmethod
    def unchanged(cls, program: Program) -> CostScale:
        """Factors that change nothing."""
        return cls(np.ones(len(program.instructions)), np.ones(len(program.dmas)))

    def of_cores(self, program: Program) -> CostScale:
        """The factors of both physical cores of a logical one: the second's where it runs the same."""
        if program.physical_cores == 1:
            return self
        second = self
        if program.second is not None:
            second = self.second or CostScale.unchanged(program.second)
        return CostScale(
            np.concatenate([self.instructions, second.instructions]),
            np.concatenate([self.dmas, second.dmas]),
        )

    @property
    def is_unchanged(self) -> bool:
        """Whether every factor is 1."""
        own = bool(np.all(self.instructions == 1.0) and np.all(self.dmas == 1.0))
        return own and (self.second is None or self.second.is_unchanged)

    def times(self, other: CostScale) -> CostScale:
        """Both scales, one after the other."""
        second = self.second or other.second
        if self.second is not None and other.second is not None:
            second = self.second.times(other.second)
        return CostScale(self.instructions * other.instructions, self.dmas * other.dmas, second)


def scaled(work: Work, scale: CostScale) -> Work:
    """The tables of one core with scaled costs."""
    part = work.dma_costs["collective"] >= 0
    moving = np.ones(len(work.collectives))
    moving[work.dma_costs["collective"][part]] = scale.dmas[part]
    return work._replace(
        costs=_scaled(work.costs, scale.instructions, "interval_ps", "latency_ps"),
        dma_costs=_scaled(work.dma_costs, scale.dmas, "work", "issue_ps", "delay_ps", "startup_ps"),
        collectives=_scaled(work.collectives, moving, "duration_ps"),
    )


def _scaled(costs: npt.NDArray[np.void], factors: Factors, *columns: str) -> npt.NDArray[np.void]:
    out = copied(costs)
    for column in columns:
        out[column] = np.rint(costs[column] * factors)
    return out
