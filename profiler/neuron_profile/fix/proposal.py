"""An edit that a finding asks for, and what the editors are given to derive it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from neuron_profile.analysis.advice.finding import Finding
from neuron_tools.frozen import frozen


@frozen
class Site:
    """A line of the user's that a finding's operations were reached through."""

    file: str
    line: int
    function: str


@frozen
class Request:
    """What an editor looks at.

    Attributes:
        finding: What to mend.
        text: The file of the finding's line.
        sites: Lines of the same file that its operations were reached through, innermost first.
    """

    finding: Finding
    text: str
    sites: Sequence[Site] = ()


@frozen
class Edit:
    """What an editor makes of it.

    Attributes:
        title: What the edit does, as an order.
        text: The new text of the file.
        tolerance: By how much values may differ, relative to the largest.
    """

    title: str
    text: str
    tolerance: float = 1e-5


@frozen
class Proposal:
    """An edit of a file."""

    finding: Finding
    path: Path
    old: str
    edit: Edit

    def diff(self, name: str) -> str:
        """The edit as a unified diff of a file of that name."""
        lines = difflib.unified_diff(
            self.old.splitlines(keepends=True), self.edit.text.splitlines(keepends=True),
            f"a/{name}", f"b/{name}",
        )  # fmt: skip
        return "".join(lines)
