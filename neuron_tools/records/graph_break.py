"""Where torch.compile makes two graphs of what could be one, as a warning of the profile tells it."""

from __future__ import annotations

import re

from neuron_tools.frozen import frozen

GRAPH_BREAK = "graph break"
"""Category of these warnings."""
_SENTENCE = re.compile(
    r"torch\.compile breaks its graph at (?P<file>.+?):(?P<line>\d+)"
    r"(?: \(from (?P<own_file>.+?):(?P<own_line>\d+)\))?"
    r": (?P<reason>.+?)\.(?: Hint: (?P<hint>.+))?",
    re.DOTALL,
)


@frozen
class GraphBreak:
    """One place where Dynamo ends a graph.

    Attributes:
        file, line: The line that it could not trace.
        own_file, own_line: The line of the compiled function that led there; the same where that is it.
        reason: Why, in Dynamo's words, without a full stop.
        hint: What Dynamo advises; "" for nothing.
    """

    file: str
    line: int
    own_file: str
    own_line: int
    reason: str
    hint: str = ""

    @classmethod
    def told(cls, message: str) -> GraphBreak | None:
        """What a warning tells; None where it is of something else."""
        found = _SENTENCE.fullmatch(message)
        if found is None:
            return None
        own_file, own_line = found["own_file"] or found["file"], found["own_line"] or found["line"]
        return cls(
            found["file"], int(found["line"]), own_file, int(own_line), found["reason"], found["hint"] or ""
        )

    @property
    def message(self) -> str:
        """The warning."""
        is_own = (self.file, self.line) == (self.own_file, self.own_line)
        origin = "" if is_own else f" (from {self.own_file}:{self.own_line})"
        hint = f" Hint: {self.hint}" if self.hint else ""
        return f"torch.compile breaks its graph at {self.file}:{self.line}{origin}: {self.reason}.{hint}"
