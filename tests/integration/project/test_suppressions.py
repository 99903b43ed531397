"""Whoever tells the linter or the type checker to look away says why, in the same line."""

import re

from tests.integration.project.checkout import ROOT, tracked_files

PRAGMA = re.compile(
    r"# noqa(: [A-Z]+\d+(, ?[A-Z]+\d+)*)?|# type: ignore(\[[^]]*\])?"
    r"|// eslint-disable[\w-]*( [@\w/-]+)*|// @ts-(expect-error|ignore)"
)
SUFFIXES = {".py", ".ts", ".mts", ".mjs", ".js"}


def without_reason(text):
    """The lines of a source file that suppress something and say nothing else."""
    found = []
    for line in text.splitlines():
        pragma = PRAGMA.search(line)
        if pragma and not re.search(r"[A-Za-z]{2}", PRAGMA.sub("", line[pragma.start() :])):
            found.append(line.strip())
    return found


def test_every_suppression_says_why():
    files = [path for path in tracked_files() if path.suffix in SUFFIXES and "tests" not in path.parts]
    assert files
    bare = {str(path.relative_to(ROOT)): without_reason(path.read_text()) for path in files}
    assert not {name: lines for name, lines in bare.items() if lines}


def test_a_suppression_without_a_reason_is_found():
    text = "a = b  # noqa: E741\nc = d  # noqa: E741  # last\ne()  # type: ignore[misc]  # noqa: ANN001\n"
    assert without_reason(text) == ["a = b  # noqa: E741", "e()  # type: ignore[misc]  # noqa: ANN001"]
    assert not without_reason("from x import y  # noqa: F401  (for others)\n")
