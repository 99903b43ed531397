"""The server behind a window: none before it is needed, one, replaced when killed, gone with the window."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.vscode.code_server import CodeServer
from tests.vscode.conftest import OpenWindow, StartVSCode
from tests.vscode.processes import servers, until
from tests.vscode.window import Window


@pytest.fixture(autouse=True)
def no_servers_of_earlier_tests(vs_code: CodeServer) -> None:
    """Windows that are closed take a moment to end theirs."""
    until(lambda: not servers(vs_code))


def test_none_starts_before_it_is_needed_and_one_serves_all(window: Window, vs_code: CodeServer) -> None:
    window.open_file("train.py")
    window.page.locator(".activitybar .action-label[aria-label*='Neuron']").first.click()
    window.page.locator(".pane-header", has_text="Profiles").first.wait_for()
    assert servers(vs_code) == set()
    window.open_profile("train.nprof")
    window.open_file("train.py")
    window.until(window.end_texts)
    assert len(servers(vs_code)) == 1


@pytest.mark.thorough
def test_it_is_gone_when_the_window_is_closed(window: Window, vs_code: CodeServer) -> None:
    window.open_profile("train.nprof")
    (server,) = servers(vs_code)
    window.close()
    waiting = os.pidfd_open(server)
    readable, _, _ = select.select([waiting], [], [], 60)
    os.close(waiting)
    assert readable
    assert servers(vs_code) == set()


@pytest.mark.thorough
def test_a_killed_one_is_replaced_and_the_timeline_goes_on(window: Window, vs_code: CodeServer) -> None:
    window.open_profile("train.nprof")
    (first,) = servers(vs_code)
    os.kill(first, signal.SIGKILL)
    window.until(lambda: servers(vs_code) - {first})
    window.painted()
    window.open_file("train.py")
    assert window.until(window.end_texts)
    assert len(servers(vs_code)) == 1


@pytest.mark.thorough
def test_two_windows_have_one_each(open_window, project: Path, vs_code: CodeServer) -> None:
    one, other = open_window(project), open_window(project)
    one.open_profile("train.nprof")
    other.open_profile("train.nprof")
    assert len(servers(vs_code)) == 2
    one.close()
    other.until(lambda: len(servers(vs_code)) == 1)
    other.open_file("train.py")
    assert other.until(other.end_texts)


@pytest.mark.thorough
def test_a_missing_python_is_one_message_with_a_fix_that_helps_at_once(
    open_window: OpenWindow, project: Path, start_vs_code: StartVSCode, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(project, folder)
    server = start_vs_code({"neuron.python": "/no/such/python"})
    window = open_window(folder, server)
    window.command("Neuron: Open Profile...", asks="Profile to open")
    window.choose("Profile to open", "train.nprof")
    toast = window.toast("Neuron Tools was not found: /no/such/python")
    assert "does not start" in toast.inner_text()
    assert toast.get_by_text("Install", exact=True).count() == 1
    assert window.page.locator(".notification-toast").count() == 1
    window.inner_page("#note").get_by_text("Neuron Tools was not found").wait_for()
    toast.get_by_text("Select Interpreter").click()
    window.page.locator('.settings-editor input[aria-label="neuron.python"]').fill(sys.executable)
    window.painted("train.nprof")  # without asking for it again
