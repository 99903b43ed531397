"""Profiles from elsewhere: of a server that the user runs, and of files that are not on this machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.unit.neuron_profile.tiny_profile import SOURCE, make_profile, tiny_tables
from tests.vscode.conftest import OPERATION, OpenWindow, StartVSCode
from tests.vscode.processes import servers
from tests.vscode.window import Window

pytestmark = pytest.mark.thorough
__all__ = ["make_profile", "tiny_tables"]


@contextmanager
def explorer(folder: Path) -> Iterator[str]:
    """The address of an Explorer of a folder, as a user starts it."""
    command = [sys.executable, "-m", "neuron_explorer.cli", str(folder), "-p", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found is not None
            yield found.group(0)
        finally:
            server.terminate()


def test_a_server_that_the_user_runs_is_used_and_none_started(
    open_window: OpenWindow, project: Path, start_vs_code: StartVSCode
) -> None:
    with explorer(project) as address:
        server = start_vs_code({"neuron.endpoint": address, "neuron.python": "/no/such/python"})
        window = open_window(project, server)
        window.open_profile("train.nprof")
        window.open_file("train.py")
        window.until(lambda: len(window.lenses()) == 2)
        assert servers(server) == set()


@pytest.fixture
def foreign(open_window: OpenWindow, make_profile: Callable[..., Path], tmp_path: Path) -> Window:
    """A window on a profile whose file is not on this machine."""
    make_profile()
    window = open_window(tmp_path)
    window.open_profile("tiny.nprof")
    return window


def test_a_missing_file_is_shown_as_captured(foreign: Window) -> None:
    foreign.click_span("Framework operations", OPERATION)
    foreign.toast("/project/train.py is not here").get_by_text("Show as Captured").click()
    foreign.line(SOURCE.splitlines()[1]).wait_for()
    foreign.until(foreign.end_texts)


def test_a_rule_for_paths_holds_as_soon_as_it_is_set(foreign: Window, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here/other.py").write_text(SOURCE)
    foreign.open_file("other.py")
    foreign.line(SOURCE.splitlines()[1]).wait_for()
    assert foreign.end_texts() == []
    (tmp_path / ".vscode").mkdir()
    rules = {"/project/train.py": "${workspaceFolder}/here/other.py"}
    (tmp_path / ".vscode/settings.json").write_text(json.dumps({"neuron.pathMappings": rules}))
    foreign.until(foreign.end_texts)
    foreign.page.locator(".tab", has_text="tiny.nprof").first.click()
    foreign.painted()
    foreign.click_span("Framework operations", OPERATION)
    foreign.until(lambda: foreign.marked_line() == 2)


def test_costs_of_a_file_whose_text_is_not_kept_are_marked_as_stale(
    open_window: OpenWindow, make_profile: Callable[..., Path], tiny_tables: Any, tmp_path: Path
) -> None:
    sources = {**tiny_tables["SourceFile"], "text": [None], "sha256": [None]}
    make_profile("tiny.nprof", {**tiny_tables, "SourceFile": sources})
    (tmp_path / "train.py").write_text(SOURCE)
    window = open_window(tmp_path)
    window.open_profile("tiny.nprof")
    window.open_file("train.py")
    shown = window.until(window.end_texts)
    assert [text.startswith("stale? ") for text in shown] == [True] * len(shown)


def test_the_explorer_opens_in_a_tab_of_the_browser_below_the_path_of_the_editor(window: Window) -> None:
    window.open_profile("train.nprof")
    with window.page.context.expect_page() as opening:
        window.command("Neuron: Open Profile in Browser")
    page = opening.value
    page.get_by_role("heading", name="Overview").first.wait_for()
    assert re.search(r"/proxy/\d+/overview\?profile=\w+$", page.url)
    page.get_by_role("link", name="Timeline", exact=True).first.click()
    page.locator("#timeline canvas").first.wait_for()
    page.reload()
    page.locator("#timeline canvas").first.wait_for()
    assert re.search(r"/proxy/\d+/timeline", page.url)
