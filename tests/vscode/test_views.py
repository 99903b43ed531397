"""The views of the activity bar, and the commands about profiles."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from neuron_profile.analysis.advice.advise import advise
from neuron_tools import open_profile
from tests.vscode.conftest import OpenWindow, capture
from tests.vscode.window import Window


@pytest.fixture(scope="module")
def two(open_shared_window: OpenWindow, project: Path, tmp_path_factory: pytest.TempPathFactory) -> Window:
    """A window on a folder with two profiles of different length, one of which is shown in the editor."""
    folder = tmp_path_factory.mktemp("two")
    shutil.copy(project / "train.py", folder)
    shutil.copytree(project / "train.nprof", folder / "long.nprof")
    capture(folder, "short.nprof", "1")
    window = open_shared_window(folder)
    window.open_profile("long.nprof")
    return window


def rows(window: Window, text: str):
    return window.page.locator(".pane-body .monaco-list-row", has_text=text)


def test_views_show_profiles_hierarchy_and_findings(two: Window, project: Path) -> None:
    two.command("Neuron: Focus on Profiles View")
    rows(two, "short.nprof").first.wait_for()
    rows(two, "● in the editor").first.wait_for()
    assert "long.nprof" in rows(two, "● in the editor").first.inner_text()
    rows(two, "aten::addmm").first.wait_for()
    rows(two, "Model").first.wait_for()
    with open_profile(project / "train.nprof") as profile:
        titles = [finding.title for finding in advise(profile)]
    two.command("Neuron: Focus on Findings View")
    rows(two, titles[0][:30]).first.wait_for()


def test_two_profiles_are_compared(two: Window) -> None:
    two.command("Neuron: Compare with...", asks="Base to compare")
    two.choose("Base to compare", "short.nprof")
    report = two.inner_page("h1:has-text('short.nprof')")
    assert "Device time" in report.locator("body").inner_text()
    assert report.locator("table tr").count() > 3


def test_a_query_shows_its_rows(two: Window) -> None:
    two.command("Neuron: Run Query...", asks="SQL over the tables")
    two.answer("SQL over the tables", "SELECT 6 * 7 AS answer, 'text' AS kind")
    two.page.locator(".view-line", has_text="answer").first.wait_for()
    two.page.locator(".view-line", has_text="42").first.wait_for()


def test_a_refused_query_is_one_message(two: Window) -> None:
    two.command("Neuron: Run Query...", asks="SQL over the tables")
    two.answer("SQL over the tables", "DROP TABLE Instruction")
    two.toast("A profile is read-only")


def test_a_profile_has_tags(two: Window) -> None:
    two.command("Neuron: Tag Profile...", asks="Tags of")
    two.answer("Tags of", "baseline, fp32")
    two.command("Neuron: Focus on Profiles View")
    rows(two, "#baseline · #fp32").first.wait_for()


def test_a_profile_is_exported_for_perfetto(two: Window, project: Path) -> None:
    two.command("Neuron: Export to Perfetto...")
    two.accept_file(".pftrace")
    two.toast("Wrote long.pftrace")
    (written,) = two.folder.glob("*.pftrace")
    trace = written.read_bytes()
    assert trace[0] == 0x0A  # the first field of the first packet
    assert b"aten::addmm" in trace


def test_the_target_of_captures_is_a_setting(two: Window) -> None:
    two.command("Neuron: Select Target...", asks="Simulated on trn2 now")
    two.choose("Simulated on trn2 now", "trn1")
    settings = two.folder / ".vscode/settings.json"
    two.until(lambda: settings.exists() and '"neuron.target": "trn1"' in settings.read_text())


@pytest.mark.thorough
def test_the_walkthrough_leads_to_a_timeline_and_ticks_it_off(window: Window) -> None:
    window.command("Neuron: Get Started")
    window.page.get_by_text("Get started with Neuron Tools").first.wait_for()
    window.page.get_by_text("Take the advice").first.wait_for()
    step = window.page.locator('.getting-started-step[data-step-id$="#timeline"]')
    step.click()
    step.get_by_role("button", name="Open Profile").click()
    window.choose("Profile to open", "train.nprof")
    window.painted("train.nprof")
    window.page.locator(".tab", has_text="Walkthrough").or_(
        window.page.locator(".tab", has_text="Welcome")
    ).first.click()
    step.locator(".codicon.complete").first.wait_for()
