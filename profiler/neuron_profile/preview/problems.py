"""What is wrong with an edited file, at its line."""

from __future__ import annotations

import re
import traceback

from neuron_tools.frozen import frozen
from neuron_tools.nki.errors import NkiError


@frozen
class Problem:
    """An error that tracing met.

    Attributes:
        file, line: Its place; "" and 0 where none of the user's files has part in it.
        message: One sentence.
        kind: "rule" for shapes, memory and other rules of the hardware and of NKI, "syntax", else "error".
    """

    file: str
    line: int
    message: str
    kind: str


def problem_of(error: BaseException, file: str) -> Problem:
    """An error as a problem at the innermost line of a file that has part in it.

    Args:
        file: The file that is edited.
    """
    if isinstance(error, SyntaxError) and error.filename == file:
        return Problem(file, error.lineno or 1, str(error.msg), "syntax")
    if isinstance(error, NkiError):
        text = str(error).removeprefix(f"{error.where}: ") if error.where else str(error)
        return Problem(*_place(error, file), text, "rule")
    message = f"{type(error).__name__}: {error}".rstrip(": ")
    return Problem(*_place(error, file), message, "error")


def _place(error: BaseException, file: str) -> tuple[str, int]:
    """Where a rule's text says, of all its places the innermost in the file; else by the traceback."""
    named = re.search(rf"{re.escape(file)}:(\d+) in ", getattr(error, "where", ""))
    if named is not None:
        return file, int(named[1])
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file and frame.lineno]
    return (file, lines[-1]) if lines else ("", 0)
