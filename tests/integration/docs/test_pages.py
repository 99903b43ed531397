"""Every code block of these pages runs as written, in order, from an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch  # noqa: F401  the device is built here if it has to be, for minutes, and in no page's time

from tests.integration.docs.pages import ROOT, Reader, blocks, commands, missing_lines

RUN = {"bash", "console", "python", "sql"}
PAGES = [
    str(page.relative_to(ROOT))
    for page in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
    if any(block.language in RUN and not block.note.startswith("not run: ") for block in blocks(page))
]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_written(page: str, tmp_path: Path) -> None:
    if page == "README.md":  # who reads it stands in a checkout
        (tmp_path / "examples").symlink_to(ROOT / "examples")
    with Reader(tmp_path) as reader:
        problems = reader.follow(ROOT / page)
    assert not problems, "\n".join(problems)


def test_what_is_not_run_says_why() -> None:
    reasons = [
        block.note.removeprefix("not run: ")
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
        for block in blocks(page)
        if block.note.startswith("not run")
    ]
    assert reasons
    assert all(len(reason.split()) > 2 for reason in reasons)


def test_a_page_whose_command_fails_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Words.\n\n```bash\necho one\nneuron-profile info absent.nprof\n```\n")
    with Reader(tmp_path) as reader:
        (problem,) = reader.follow(page)
    assert problem.startswith("page.md:3: ")
    assert "absent.nprof" in problem


def test_notes_files_and_console_blocks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- file: sub/hello.py -->\n```python\nprint('value', 41.5)\n```\n"
        "<!-- not run: it needs a cluster -->\n```bash\nfalse\n```\n"
        "```python\na = 1\n```\n<!-- continues -->\n```python\nassert a == 1\n```\n"
        "<!-- exits with 0 or 1 -->\n```bash\nexit 1\n```\n"
        '```console\n$ python sub/hello.py\nvalue   40\n$ echo "a\nb"\na\n...\n```\n'
    )
    notes = ["file: sub/hello.py", "not run: it needs a cluster", "", "continues", "exits with 0 or 1", ""]
    assert [block.note for block in blocks(page)] == notes
    assert [command for command, _ in commands(blocks(page)[-1].text)] == [
        "python sub/hello.py",
        'echo "a\nb"',
    ]
    with Reader(tmp_path) as reader:
        assert not reader.follow(page)


def test_other_words_or_far_numbers_are_missing_lines() -> None:
    printed = "total   10.0 us   (3 of 4)\n"
    assert not missing_lines("total 11 us (3 of 4)\n...\n", printed)
    assert missing_lines("total 20 us (3 of 4)", printed)
    assert missing_lines("sum 10 us (3 of 4)", printed)
