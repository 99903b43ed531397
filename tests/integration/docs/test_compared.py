"""The page that compares with other profilers names a test for whatever it claims, and each is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "compared.md"
_NAMED = re.compile(
    r"`((?:tests/[\w/]+\.py)|(?:explorer_ui/timeline/tests/[\w/]+\.test\.ts))(?:::(\w+))?` \|$"
)


def _rows() -> list[str]:
    """Rows of the page's tables without their headings."""
    lines = PAGE.read_text().splitlines()
    return [
        line
        for line, below in zip(lines, [*lines[1:], ""], strict=True)
        if line.startswith("| ") and not below.startswith("|--")
    ]


def _missing(row: str) -> str:
    """What a row names that there is not; one that says what is missing names nothing."""
    named = _NAMED.search(row)
    if re.search(r"\| – [^|]+ \| \|$", row):
        return ""
    if named is None:
        return f"no test: {row}"
    path, test = ROOT / named[1], named[2]
    if not path.is_file():
        return f"no file {named[1]}"
    return "" if test is None or re.search(rf"^def {test}\(", path.read_text(), re.MULTILINE) else named[0]


def test_every_row_names_a_test_that_there_is() -> None:
    rows = _rows()
    assert len(rows) > 30
    assert [missing for row in rows if (missing := _missing(row))] == []
