"""The source lines that a Program came from, as they read when it was compiled."""

from __future__ import annotations

import linecache
from collections import defaultdict

from neuron_tools.records.program import Program


def source_lines(program: Program) -> dict[str, dict[int, str]]:
    """Text by file and line number of every line in the Program's stacks; unreadable files are left out."""
    wanted: dict[str, set[int]] = defaultdict(set)
    for operation in program.framework:
        for frame in operation.stack:
            wanted[frame.file].add(frame.line)
    texts = {file: _lines(file, sorted(numbers)) for file, numbers in sorted(wanted.items())}
    return {file: lines for file, lines in texts.items() if lines}


def _lines(file: str, numbers: list[int]) -> dict[int, str]:
    texts = {number: linecache.getline(file, number).rstrip("\n") for number in numbers}
    return {number: text for number, text in texts.items() if text}
