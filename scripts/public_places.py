"""Where a case of a public repository ran out of time or memory: inputs, reference, kernel or comparison."""

from __future__ import annotations

import re
import traceback

_PLACES = (
    ("(in the library's own reference)", "", "golden|compute_ref|_ref$"),
    ("(in the simulated kernel)", r"neuron_tools/nki/(run|ranks|simulation|timing)\.py", ""),
    ("(in the library's comparison)", "output_validator", ""),
)
"""Parts of a case: what they are called, and patterns of a file and a function that only they run."""


def place_of(error: BaseException | None) -> str:
    """In which part of a case an error arose, by the files and functions that were running.

    Args:
        error: With the errors that it was raised from.
    """
    running: list[tuple[str, str]] = []
    while error is not None:
        frames = traceback.walk_tb(error.__traceback__)
        running += [(frame.f_code.co_filename, frame.f_code.co_name) for frame, _ in frames]
        error = error.__cause__ or error.__context__
    for place, file, function in _PLACES:
        if any(re.search(file, path) and re.search(function, name) for path, name in running):
            return place
    return "(in the test's own inputs)"
