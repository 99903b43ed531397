"""Scripts whose work is in libraries: heat, list, walk and advice are at lines of the user's own file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from neuron_profile.analysis.advice.advise import advise
from neuron_tools import open_profile
from tests.integration.frameworks.test_own_lines import FOLDER, LEAST_SHARE, SCRIPTS
from tests.vscode.conftest import OpenWindow
from tests.vscode.quantities import nanoseconds, percent

pytestmark = pytest.mark.thorough
_ROUNDED = 0.06
ROW = ".pane-body .monaco-list-row"


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_users_own_lines_come_first(name: str, open_window: OpenWindow, tmp_path: Path) -> None:
    text, packages = SCRIPTS[name]
    for package in ("transformers", *packages):
        pytest.importorskip(package)
    script = tmp_path / f"{name}.py"
    shutil.copy(FOLDER / script.name, script)
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "--host-clock", "fixed"]
    command += ["-o", "run.nprof", "--", sys.executable, script.name]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    lines = script.read_text().splitlines()
    hottest = 1 + next(number for number, line in enumerate(lines) if text in line)

    window = open_window(tmp_path)
    window.open_profile("run.nprof")
    window.open_file(script.name)
    window.go_to_line(hottest)  # only lines in sight have their costs drawn

    def costs_in_sight() -> list[str]:
        ends = window.end_texts()
        return ends if sum(map(percent, ends)) >= 100 * LEAST_SHARE - _ROUNDED * len(ends) else []

    ends = window.until(costs_in_sight)
    window.go_to_line(1)
    window.command("Neuron: Next Hottest Line")
    window.until(lambda: window.cursor_line() == hottest)
    shown = window.page.locator(".editor-instance .view-line", has_text=lines[hottest - 1].strip()).first
    place = str(shown.evaluate("line => line.style.top"))
    assert nanoseconds(window.end_text_at(place)) == max(nanoseconds(end) for end in ends)

    squiggles = window.page.locator(".squiggly-warning, .squiggly-info")
    with open_profile(tmp_path / "run.nprof") as profile:
        placed = [found for found in advise(profile) if found.place.file]
    assert {found.place.file for found in placed} == {str(script)}
    assert placed[0].place.line == hottest
    window.until(squiggles.count)
    window.command("Neuron: Focus on Findings View")
    window.page.locator(ROW, has_text=placed[0].title[:30]).first.wait_for()

    window.command("Neuron: Focus on Hierarchy View")
    window.page.locator(ROW, has_text="Modules").first.hover()
    listed = window.page.locator(ROW, has_text=f"{script.name}:")

    def comes_into_sight() -> bool:  # a tree has only the rows that are seen
        window.page.mouse.wheel(0, 20)
        return bool(listed.count())

    window.until(comes_into_sight)
    assert f"{script.name}:{hottest}" in listed.first.inner_text()
