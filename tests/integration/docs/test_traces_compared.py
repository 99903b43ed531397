"""The page that sets other analysers beside ours: every test that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "traces-compared.md"
TOOLS = ("HTA", "TraceLens", "XProf", "Nsight")


def cells():
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_analysis_names_a_test_or_what_is_missing():
    heading, *rows = cells()

    assert tuple(heading[1:-1]) == TOOLS
    assert all(any(cell == "yes" for cell in row[1:-1]) for row in rows)
    assert all(re.fullmatch(r"`tests/[\w/.:]+`|missing.*", row[-1]) for row in rows)


def test_the_tests_that_the_page_names_are_there():
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE.read_text())

    assert named
    for path, test in named:
        assert f"def {test or 'test_'}" in (ROOT / path).read_text(), f"{path}::{test}"
