"""Takes the pictures of docs/vscode.md and its tutorial: a real VS Code with the extension, in Chromium.

scripts/install_code_server.sh && python scripts/take_vscode_pictures.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.browser.chromium import open_browser  # noqa: E402  # tests are not installed
from tests.vscode import (  # noqa: E402  # tests are not installed
    code_server,
    test_debugger as debugged,
    test_notebooks as notebooks,
)
from tests.vscode.conftest import TRAIN  # noqa: E402  # tests are not installed
from tests.vscode.window import Window  # noqa: E402  # tests are not installed

PICTURES = ROOT / "docs" / "pictures"
VIEWPORT = {"width": 1440, "height": 860}


def capture(folder: Path, script: str, profile: str, *arguments: str) -> None:
    """Capture a script of a folder, or `-m` and a module."""
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "--host-clock", "fixed", "-o", profile]
    subprocess.run(
        [*command, "--", "python", script, *arguments], cwd=folder, check=True, capture_output=True
    )


def take(window: Window, name: str) -> None:
    """Save what the window shows."""
    window.page.wait_for_timeout(1500)
    window.page.screenshot(path=PICTURES / f"{name}.png")
    print(f"docs/pictures/{name}.png")


def take_editor(window: Window) -> None:
    """Costs at the lines, the hover, and the advice at the light bulb."""
    window.command("View: Toggle Primary Side Bar Visibility")
    window.open_file("train.py")
    window.until(window.end_texts)
    window.until(lambda: window.page.locator(".squiggly-warning, .squiggly-info").count())
    take(window, "vscode-lines")
    window.page.locator(".view-line", has_text="loss = model(x)").first.hover(position={"x": 150, "y": 8})
    window.page.locator(".monaco-hover:visible", has_text="Device time").first.wait_for()
    take(window, "vscode-hover")


def take_advice(window: Window) -> None:
    """The findings at a line, with what can be asked of them."""
    window.page.keyboard.press("Escape")
    window.go_to_line(17)
    window.page.keyboard.press("Control+.")
    window.page.locator(".action-widget").get_by_text("Show the evidence").first.wait_for()
    take(window, "vscode-advice")
    window.page.keyboard.press("Escape")


def take_changed(window: Window, project: Path) -> None:
    """A file that changed since its capture, and what changed."""
    script = project / "train.py"
    text = script.read_text()
    script.write_text(
        text.replace(
            "        hidden = torch.relu", "        scale = 0.5\n        hidden = scale * torch.relu"
        )
    )
    changed = window.page.locator(".codelens-decoration a", has_text="Changed since")
    changed.first.wait_for()
    changed.first.click()
    both = window.page.locator(".monaco-diff-editor")
    both.locator(".original .view-line", has_text="hidden").first.wait_for()
    take(window, "vscode-changed")
    script.write_text(text)


def take_kernel(window: Window) -> None:
    """Costs inside an NKI kernel."""
    window.command("View: Close All Editors")
    window.open_profile("softmax.nprof")
    window.open_file("softmax.py")
    window.go_to_line(64)
    window.until(window.end_texts)
    take(window, "vscode-kernel")


def take_both(window: Window) -> None:
    """The timeline beside the code, zoomed into a line's instructions, with the views of the activity bar."""
    window.open_file("train.py")
    window.until(window.end_texts)
    window.command("Neuron: Focus on Profiles View")
    window.command("Neuron: Focus on Findings View")
    window.page.locator(".pane-body .monaco-list-row", has_text="Model").first.wait_for()
    window.open_file("train.py")
    window.command("View: Move Editor into Right Group")
    window.go_to_line(16)
    window.page.keyboard.press("Control+Shift+G")
    window.painted()
    take(window, "vscode-timeline")


def take_debugger(window: Window) -> None:
    """Stopped in the slowest execution of a line."""
    window.command("View: Close All Editors")
    window.open_profile("steps.nprof")
    window.open_file("steps.py")
    window.until(window.end_texts)
    window.go_to_line(debugged.SLOW_LINE)
    window.command("Neuron: Debug the Slowest Execution of the Line")
    window.until(lambda: debugged.stopped_at(window))
    debugged.variable(window, "rows")
    take(window, "vscode-debugger")
    window.command("Debug: Stop")


def take_notebook(window: Window) -> None:
    """Costs in the cells of a notebook."""
    window.command("View: Close All Editors")
    window.command("View: Show Explorer")
    window.open_profile("notebook.nprof")
    window.open_file(notebooks.NAME)
    window.page.locator(".view-line", has_text="hidden =").first.click()
    window.until(lambda: len(window.end_texts()) == 4)
    take(window, "vscode-notebook")


def main() -> None:
    """Take every picture; the README of the extension has two of them."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="neuron-pictures-") as name:
        project = Path(name) / "project"
        project.mkdir()
        (project / "train.py").write_text(TRAIN)
        for script in ("softmax.py", "report.py"):
            shutil.copy(ROOT / "examples/nki" / script, project)
        capture(project, "train.py", "train.nprof")
        (project / "steps.py").write_text(debugged.PROGRAM)
        (project / notebooks.NAME).write_text(notebooks.notebook())
        capture(project, "softmax.py", "softmax.nprof")
        capture(project, "steps.py", "steps.nprof")
        capture(project, "-m", "notebook.nprof", "neuron_tools.notebook", notebooks.NAME)
        extensions = code_server.install_extension(code_server.package_extension(), Path(name))
        settings = {"neuron.python": sys.executable, "workbench.colorTheme": "Default Light Modern"}
        user = Path(name) / "user"
        with code_server.running(user, extensions, settings) as server, open_browser() as browser:
            window = Window(browser.new_page(viewport=VIEWPORT), project)
            window.open(server.window_url(project))
            window.open_profile("train.nprof")
            take_editor(window)
            take_advice(window)
            take_changed(window, project)
            window.command("View: Close All Editors")
            window.open_profile("train.nprof")
            take_both(window)
            take_kernel(window)
            take_notebook(window)
            take_debugger(window)  # opens a panel, which stays
    for name in ("lines", "timeline", "hover", "changed"):
        shutil.copy(PICTURES / f"vscode-{name}.png", ROOT / f"vscode-extension/media/{name}.png")


if __name__ == "__main__":
    main()
