"""Jobs with more ranks than run: each rank that runs stands for several, one in each replica of the job.

The R ranks that run are one replica; a job of N ranks has N / R of them, numbered one after the other, so
that rank r of replica k is rank r + k R. A group that spans the outermost dimension of the mesh (the whole
job, or every s-th rank from its first to its last) reaches over all replicas; any other group, a tensor
parallel one say, exists once in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen


@frozen
class Replication:
    """How many ranks run, and how many they stand for."""

    running: int
    simulated: int

    @property
    def replicas(self) -> int:
        """Replicas of the ranks that run."""
        return max(self.simulated // max(self.running, 1), 1)

    def reaches_over_replicas(self, ranks: Sequence[int]) -> bool:
        """Whether a group spans the outermost dimension: evenly spaced ranks that come around."""
        if len(ranks) < 2:
            return self.running == 1
        steps = {after - before for before, after in pairwise(ranks)}
        return len(steps) == 1 and steps.pop() * len(ranks) == self.running

    def simulated_ranks(self, ranks: Sequence[int]) -> tuple[int, ...]:
        """Ranks of the simulated job that a group of running ranks is, as the first replica sees it."""
        if self.replicas == 1 or not self.reaches_over_replicas(ranks):
            return tuple(ranks)
        return tuple(rank + replica * self.running for replica in range(self.replicas) for rank in ranks)


def replication(running: int, simulated: int) -> Replication:
    """The replication of a job.

    Args:
        running: Ranks that run.
        simulated: Ranks to simulate; 0: those that run.

    Raises:
        UsageError: The one is no multiple of the other.
    """
    if simulated and simulated % running:
        raise UsageError(
            f"{simulated} ranks cannot be simulated by {running}: the ranks that run are replicated whole, "
            f"so --ranks must be a multiple of {running}."
        )
    return Replication(running, simulated or running)
