"""How often lines are come to, against Python's own trace of them."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from neuron_profile.analysis.source_lines import line_entries, looped_lines, most_alike_calls

STATEMENTS = {
    "call over lines": ("z = max(\n    abs(-1),\n    2,\n)\n", (1, 2)),
    "one line": ("z = max(abs(-1), 2)\n", (1,)),
    "chain": ("z = (\n    'a'\n    .upper()\n    .lower()\n)\n", (2, 3, 4)),
    "with": ("from contextlib import nullcontext\nwith nullcontext():\n    z = 1\n", (2, 3)),
    "body of a loop": ("for _ in range(1):\n    z = abs(\n        -1\n    )\n", (2,)),
    "function": ("def f(x):\n    return max(\n        x,\n        abs(x),\n    )\nf(1)\n", (2, 4)),
}


def hits(text: str) -> dict[int, int]:
    """How often Python says that it comes to each line."""
    counted: dict[int, int] = {}

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename == "traced":
            if event == "line":
                counted[frame.f_lineno] = counted.get(frame.f_lineno, 0) + 1
            return trace
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        exec(compile(text, "traced", "exec"), {})  # what Python says of it is the point
    finally:
        sys.settrace(before)
    return counted


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_line_is_come_to_as_often_as_python_says(name: str) -> None:
    text, lines = STATEMENTS[name]
    counted = hits(text)
    assert {line: line_entries(text, line) for line in lines} == {line: counted[line] for line in lines}


@pytest.mark.parametrize(
    ("line", "alike"),
    [("y = x * 2 * 3", 2), ("y = (a * b).sum() + (c * d).sum()", 2), ("y = model(x)", 1), ("(", 1)],
)
def test_alike_calls_of_a_line_are_counted(line: str, alike: int) -> None:
    assert most_alike_calls(line, 1) == alike


def test_lines_of_loops_are_known() -> None:
    text = "x = 1\nfor i in range(2):\n    x += i\ny = [\n    j for j in range(3)]\n"
    assert looped_lines(text) == {2, 3, 4, 5}
    assert looped_lines("for") == frozenset()
