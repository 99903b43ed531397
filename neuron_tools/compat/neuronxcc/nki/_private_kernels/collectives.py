"""`neuronxcc.nki._private_kernels.collectives`: which ranks a ring is made of, without AWS's kernels."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["CollectivesConfig"]

Pairs = list[tuple[int, int]]


class CollectivesConfig:
    """The rings of some groups of ranks.

    Args:
        replica_groups: The ranks of each.

    Attributes:
        replica_groups: The same.
        rank_src_tgt_pairs: For each rank, who sends to whom in its ring.
    """

    def __init__(self, replica_groups: Sequence[Sequence[int]]) -> None:
        self.replica_groups = replica_groups
        self.rank_src_tgt_pairs: dict[int, Pairs] = {
            rank: list(zip(group, [*group[1:], *group[:1]])) for group in replica_groups for rank in group
        }
