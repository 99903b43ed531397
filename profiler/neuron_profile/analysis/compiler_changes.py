"""What the compiler of NKI kernels changed of what is written, pass by pass."""

from __future__ import annotations

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_PASSES = """
SELECT pass_name AS name,
    sum(greatest(removed_instructions, 0))::BIGINT AS removed,
    sum(greatest(-removed_instructions, 0))::BIGINT AS added,
    sum(saved_hbm_bytes)::BIGINT AS saved_bytes,
    sum(saved_busy_ns)::BIGINT AS saved_ns,
    count(DISTINCT (source_file, source_line))::BIGINT AS lines
FROM "Transformation" GROUP BY ALL ORDER BY abs(sum(saved_busy_ns)) DESC, name
"""
_TITLES = {
    "blocks": "split block dimensions",
    "in_psum": "left in PSUM what one instruction reads",
    "broadcasts": "brought rows to all partitions",
    "fills": "left out fills",
    "copies": "left out copies and overwritten stores",
    "redundant": "loaded once what does not change",
    "fission": "split loops and joined small operations",
    "psum_reads": "read products where they are",
    "bank_copies": "copied turned tiles together",
    "merge": "joined transfers",
    "spill": "spilled what SBUF does not hold",
}


@frozen
class PassChange:
    """What one pass changed.

    Attributes:
        name: The pass.
        removed, added: Instructions and transfers that fell away and that were put in.
        saved_bytes: Bytes of HBM that are not moved any more; negative where more are.
        saved_ns: Time of engines and DMA that falls away; negative where more is taken.
        lines: Source lines that it changed.
    """

    name: str
    removed: int
    added: int
    saved_bytes: int
    saved_ns: int
    lines: int

    @property
    def title(self) -> str:
        """What it does, in words."""
        return _TITLES.get(self.name, self.name)


def find_compiler_changes(profile: Profile) -> tuple[PassChange, ...]:
    """The passes that changed anything, by the time of engines that they save or take."""
    whole = profile.whole
    return whole.kept("compiler_changes", lambda: _changes(whole))


def _changes(profile: Profile) -> tuple[PassChange, ...]:
    return tuple(PassChange(**row) for row in profile.query(_PASSES).to_pylist())
