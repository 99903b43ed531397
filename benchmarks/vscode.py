"""The extension in a real VS Code: how soon it is active, how soon costs stand at lines, what its page holds.

The workbench runs in Chromium (code-server), the extension host in Node, on the data of a real capture; the
memory is taken with a synthetic profile of a hundred million spans. Chromium and Node run compiled code: how
this machine runs compiled code scales their targets.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.explorer import LARGE, SMALL, profile_of_size
from benchmarks.explorer_page import renderers
from benchmarks.figures import Figure, Target
from neuron_tools.errors import NeuronToolsError
from tests.vscode import code_server
from tests.vscode.code_server import CodeServer
from tests.vscode.processes import servers
from tests.vscode.window import Window

PACKER = code_server.ROOT / "node_modules/.bin/vsce"
LINES = 2000
REPETITIONS = 5
HEAD = "import torch\n\nx = torch.ones(64, 64, device='neuron')\n"

# Time from the frame in which the file's text stands to the one in which costs do.
_COSTS_AFTER = r"""
() => new Promise((resolve) => {
  let text = 0;
  const isCosted = (span) => /\d\s(ns|µs|ms|s)\b/.test(getComputedStyle(span, '::after').content);
  const look = () => {
    const lines = document.querySelector('.editor-instance .view-lines');
    const now = performance.now();
    if (!text && lines?.textContent.includes('torch.ones')) text = now;
    // Only spans of decorations are asked for their style: asking all in each frame would hold the page up.
    if (text && [...lines.querySelectorAll('span[class*="ced-"]')].some(isCosted)) resolve(now - text);
    else if (text && now - text > 20000) resolve(Infinity);
    else requestAnimationFrame(look);
  };
  look();
})
"""


def run(quick: bool = False) -> list[Figure]:
    """All figures; `quick` takes a profile of a million spans.

    Raises:
        NeuronToolsError: VS Code, or what the extension is built with, is not installed.
    """
    if not (code_server.ENTRY.exists() and PACKER.exists()):
        raise NeuronToolsError(
            "VS Code is not installed here: run make .venv/.front_ends and scripts/install_code_server.sh."
        )
    spans = SMALL if quick else LARGE
    with tempfile.TemporaryDirectory(prefix="neuron-vscode-") as name:
        folder = Path(name)
        project = _project(folder / "project", spans)
        with _window(folder, project) as (window, server, browser):
            return [*_editor_figures(window, server), *_memory_figures(window, browser, spans)]


def _editor_figures(window: Window, server: CodeServer) -> list[Figure]:
    window.open_file("long.py")
    window.page.wait_for_timeout(2000)
    early = len(servers(server))
    window.open_profile("long.nprof")
    delays = [_costs_delay_ms(window) for _ in range(REPETITIONS)]
    return [
        Figure("activation", _activation_ms(window), "ms", Target("<=", 200, "compiled"),
               note="as VS Code measures it"),
        Figure("servers before one is needed", early, "", Target("<=", 0), note="Python open, no profile"),
        Figure(f"costs at the lines of a {LINES}-line file", min(delays), "ms", Target("<=", 100, "compiled"),
               note=f"after its text, the least of {REPETITIONS}; first time {delays[0]:.0f} ms"),
    ]  # fmt: skip


def _memory_figures(window: Window, browser: Any, spans: int) -> list[Figure]:
    window.command("View: Close All Editors")
    window.page.wait_for_timeout(3000)
    before = _renderers_bytes(browser)
    window.open_profile("large.nprof")
    _use(window)
    held = (_renderers_bytes(browser) - before) / 2**20
    note = "what the window's processes take more after opening, zooming and moving"
    return [
        Figure(
            f"memory of the timeline, {spans / 1e6:.0f} M spans", held, "MiB", Target("<=", 300), note=note
        )
    ]


def _renderers_bytes(browser: Any) -> int:
    """Memory of the window and its webviews: what is their own, and their share of what is not."""
    return sum(psutil.Process(renderer).memory_full_info().pss for renderer in renderers(browser))


def _costs_delay_ms(window: Window) -> float:
    """Milliseconds from the text of the long file to its costs, with the file closed before."""
    window.command("View: Close All Editors")
    window.page.wait_for_timeout(1500)
    measuring = window.page.evaluate_handle(f"() => ({{ done: ({_COSTS_AFTER})() }})")
    window.open_file("long.py")
    return float(measuring.evaluate("(measured) => measured.done"))


def _activation_ms(window: Window) -> float:
    """What the editor "Running Extensions" says of ours."""
    window.command("Developer: Show Running Extensions")
    row = window.page.locator(".runtime-extensions-editor .extension", has_text="Neuron Tools").first
    window.page.locator(".runtime-extensions-editor .extension").first.hover()

    def comes_into_sight() -> bool:  # the list has only the rows that are seen
        window.page.mouse.wheel(0, 200)
        return bool(row.count())

    window.until(comes_into_sight)
    found = re.search(r"([\d.]+)\s?ms", row.inner_text())
    return float(found.group(1)) if found else float("nan")


def _use(window: Window) -> None:
    """Zoom into the timeline and move through it, for some seconds."""
    box = window.timeline().locator("#timeline").bounding_box()
    window.page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5)
    for key in "wwwddddaaasssswwwwddddssss":
        window.page.keyboard.down(key)
        window.page.wait_for_timeout(400)
        window.page.keyboard.up(key)
    window.page.wait_for_timeout(1500)


def _project(folder: Path, spans: int) -> Path:
    """A folder with a long script and its capture, and a profile of so many spans."""
    folder.mkdir()
    count = LINES - HEAD.count("\n")
    (folder / "long.py").write_text(HEAD + "".join(f"x = x + {number % 7}\n" for number in range(count)))
    command = [
        sys.executable,
        "-m",
        "neuron_profile.cli",
        "capture",
        "--host-clock",
        "fixed",
        "-o",
        "long.nprof",
    ]
    subprocess.run([*command, "--", sys.executable, "long.py"], cwd=folder, check=True, capture_output=True)
    (folder / "large.nprof").symlink_to(profile_of_size(spans))
    return folder


@contextmanager
def _window(folder: Path, project: Path) -> Iterator[tuple[Window, CodeServer, Any]]:
    from tests.browser.chromium import open_browser

    extensions = code_server.install_extension(code_server.package_extension(), folder)
    settings = {"neuron.python": sys.executable, "neuron.decorations.minimumShare": 0}  # text at every line
    with code_server.running(folder / "user", extensions, settings) as server, open_browser() as browser:
        window = Window(browser.new_page(viewport={"width": 1600, "height": 900}), project)
        window.open(server.window_url(project))
        yield window, server, browser
