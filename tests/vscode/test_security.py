"""A malicious profile runs no code and opens no file by itself; an untrusted workspace runs nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.neuron_profile.tiny_profile import make_profile, tiny_tables
from tests.vscode.conftest import OPERATION, OpenWindow, StartVSCode
from tests.vscode.processes import servers, until
from tests.vscode.window import Window

__all__ = ["make_profile", "tiny_tables"]
MARK = "document.title='owned';window.owned=1"
SCRIPT = f'<img src=x onerror="{MARK}"><script>{MARK}</script>[x](command:workbench.action.quit)'


@pytest.fixture
def hostile(make_profile: Callable[..., Path], tiny_tables: Any, tmp_path: Path) -> Path:
    """A folder with a profile that has scripts and huge texts for names, and points at files elsewhere."""
    count = len(tiny_tables["FrameworkInstruction"]["id"])
    framework = {
        **tiny_tables["FrameworkInstruction"],
        "framework_name": [SCRIPT, SCRIPT + "y" * 100_000, "../" * 50],
        "layer": [f"/{SCRIPT}"] * count,
    }
    files = {**tiny_tables["StackFrameFileName"], "name": ["/etc/hostname"]}
    sources = {**tiny_tables["SourceFile"], "path": ["/etc/hostname"], "text": [SCRIPT]}
    functions = {**tiny_tables["StackFrameFunctionName"], "name": [SCRIPT]}
    tables = {
        **tiny_tables,
        "FrameworkInstruction": framework,
        "StackFrameFileName": files,
        "SourceFile": sources,
        "StackFrameFunctionName": functions,
    }
    make_profile("hostile.nprof", tables)
    return tmp_path


def owned(window: Window) -> bool:
    """Whether a script of the profile ran in any frame."""
    return any(frame.evaluate("Boolean(window.owned)") for frame in window.page.frames if frame.url)


def test_names_run_no_scripts_and_paths_open_no_files(open_window: OpenWindow, hostile: Path) -> None:
    window = open_window(hostile)
    complaints: list[str] = []
    window.page.on("dialog", lambda dialog: complaints.append(dialog.message))
    window.open_profile("hostile.nprof")
    window.click_span("Framework operations", OPERATION)
    window.toast("which is outside this workspace")
    assert window.page.locator(".tab", has_text="hostname").count() == 0
    window.command("Neuron: Focus on Hierarchy View")
    window.page.locator(".pane-body .monaco-list-row", has_text="<img src=x").first.wait_for()
    window.command("Neuron: Run Query...", asks="SQL over the tables")
    window.answer("SQL over the tables", "SELECT framework_name FROM FrameworkInstruction")
    window.line("<img").wait_for()
    assert not owned(window)
    assert complaints == []
    assert "owned" not in window.page.title()


def test_the_page_allows_only_our_script(window: Window) -> None:
    window.open_profile("train.nprof")
    page = window.timeline()
    policy = page.locator('meta[http-equiv="Content-Security-Policy"]').get_attribute("content")
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert "script-src 'nonce-" in policy
    assert "unsafe-eval" not in policy
    ran = page.locator("body").evaluate(
        """body => new Promise(resolve => {
            const script = document.createElement('script');
            script.textContent = 'window.injected = true';
            body.append(script);
            setTimeout(() => resolve(Boolean(window.injected)), 200);
        })"""
    )
    assert ran is False


def test_an_untrusted_workspace_runs_nothing_until_it_is_trusted(
    open_window: OpenWindow, project: Path, start_vs_code: StartVSCode
) -> None:
    settings = {"neuron.python": sys.executable, "security.workspace.trust.startupPrompt": "never"}
    server = start_vs_code(settings, trust=True)
    window = open_window(project, server)
    window.command("Neuron: Open Profile...", asks="Profile to open")
    window.choose("Profile to open", "train.nprof")
    toast = window.toast("trust the workspace first")
    assert servers(server) == set()
    toast.get_by_text("Manage Trust").click()
    window.page.locator(".workspace-trust-editor").get_by_role("button", name="Trust", exact=True).click()
    window.painted("train.nprof")  # what was asked for before is done now
    until(lambda: len(servers(server)) == 1)  # one that the granted settings overtook while it started ends
