"""Profiles from elsewhere: of a server that the user runs, and of files that are not on this machine."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.neuron_profile.tiny_profile import SOURCE, make_profile, tiny_tables
from tests.vscode import code_server
from tests.vscode.conftest import OpenWindow
from tests.vscode.processes import servers
from tests.vscode.test_timeline import click_span
from tests.vscode.window import Window

__all__ = ["make_profile", "tiny_tables"]
OPERATION = 1030 / 1310  # middle of the first framework operation, as a part of the timeline


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
    open_window: OpenWindow, project: Path, extensions: Path, tmp_path: Path
) -> None:
    with explorer(project) as address:
        settings = {"neuron.endpoint": address, "neuron.python": "/no/such/python"}
        with code_server.running(tmp_path / "user", extensions, settings) as server:
            window = open_window(project, server)
            window.open_profile("train.nprof")
            window.open_file("train.py")
            assert len(window.until(window.lenses)) == 2
            assert servers(server) == set()


@pytest.fixture
def foreign(open_window: OpenWindow, make_profile: Callable[..., Path], tmp_path: Path) -> Window:
    """A window on a profile whose file is not on this machine."""
    make_profile()
    window = open_window(tmp_path)
    window.open_profile("tiny.nprof")
    return window


@pytest.mark.unsteady
def test_a_missing_file_is_shown_as_captured_and_a_mapped_one_is_found(
    foreign: Window, tmp_path: Path
) -> None:
    click_span(foreign, "Framework operations", OPERATION)
    toast = foreign.toast("/project/train.py is not here")
    toast.get_by_text("Show as Captured").click()
    line = SOURCE.splitlines()[1]
    foreign.page.locator(".view-line", has_text=line).first.wait_for(timeout=45_000)
    assert foreign.until(foreign.end_texts)
    foreign.command("View: Close All Editors")
    (tmp_path / "here").mkdir()
    (tmp_path / "here/train.py").write_text(SOURCE)
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode/settings.json").write_text(
        '{"neuron.pathMappings": {"/project": "${workspaceFolder}/here"}}'
    )
    foreign.open_profile("tiny.nprof")

    def is_found() -> bool:  # once VS Code has read the setting
        click_span(foreign, "Framework operations", OPERATION)
        foreign.page.wait_for_timeout(2000)
        return foreign.page.locator(".tab", has_text="train.py").count() > 0

    foreign.until(is_found)
    foreign.until(lambda: foreign.marked_line() in (2, 3))
