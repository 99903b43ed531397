"""Source frames of a profile: which line a stack id means, and the line's text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_FRAMES = """
SELECT frame.id, file.name AS file, location.line_number AS line, coalesce(function.name, '') AS function,
    coalesce(frame.parent_frame_id, '') AS parent
FROM StackFrame frame
JOIN StackFrameFileLocation location ON location.id = CAST(frame.file_location_id AS VARCHAR)
JOIN StackFrameFileName file ON file.id = CAST(location.file_name_id AS VARCHAR)
LEFT JOIN StackFrameFunctionName function ON function.id = CAST(location.function_name_id AS VARCHAR)
"""


@frozen
class SourceFrame:
    """A frame of a source stack; `parent` is the id of its caller's frame, "" at the outermost."""

    file: str
    line: int
    function: str
    parent: str


@dataclass(frozen=True, slots=True, order=True)
class SourceLine:
    """A line of a source file; lines count from 1."""

    file: str
    line: int


def load_frames(profile: Profile) -> dict[str, SourceFrame]:
    """All source frames by id; empty where the profile has no stacks."""
    return profile.whole.kept("source frames", lambda: _load_frames(profile))


def _load_frames(profile: Profile) -> dict[str, SourceFrame]:
    return {row.pop("id"): SourceFrame(**row) for row in profile.query(_FRAMES).to_pylist()}


def stack(frames: Mapping[str, SourceFrame], leaf: str) -> list[SourceFrame]:
    """The frames of a stack, innermost first; stops at an unknown or repeated id."""
    found: list[SourceFrame] = []
    seen: set[str] = set()
    while leaf in frames and leaf not in seen:
        seen.add(leaf)
        found.append(frames[leaf])
        leaf = frames[leaf].parent
    return found


class SourceTexts:
    """Texts of the source files that a profile keeps.

    Never those of this machine's files: a profile of somebody else may list any.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._lines: dict[str, list[str]] = {}

    def files(self) -> list[str]:
        """Paths of the files that the profile lists."""
        rows = self._profile.query("SELECT DISTINCT path FROM SourceFile ORDER BY path").to_pylist()
        return [row["path"] for row in rows]

    def lines(self, file: str) -> list[str]:
        """The lines of a file; empty where the profile does not keep them."""
        if file not in self._lines:
            self._lines[file] = self._read(file)
        return self._lines[file]

    def text(self, file: str) -> str | None:
        """The text of a file as it was captured; None where the profile does not keep it."""
        rows = self._profile.query("SELECT text FROM SourceFile WHERE path = ? LIMIT 1", [file]).to_pylist()
        return rows[0]["text"] if rows else None

    def line(self, place: SourceLine) -> str:
        """The text of a line without its indentation; "" where it is not known."""
        lines = self.lines(place.file)
        return lines[place.line - 1].strip() if 1 <= place.line <= len(lines) else ""

    def _read(self, file: str) -> list[str]:
        text = self.text(file)
        return [] if text is None else list(text.splitlines())
