"""What a failed test leaves to look at: pictures of its windows, the logs of VS Code and the extension."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tests.vscode.code_server import ROOT, CodeServer
from tests.vscode.window import Window

FOLDER = Path(os.environ.get("VSCODE_TEST_EVIDENCE", ROOT / ".cache/vscode-failures"))
MOST_LINES = 40
PICTURE_MS = 10_000
# What a page says that it shows: the text of the workbench's notifications, or the state of a timeline.
_STATE = """
() => [...document.querySelectorAll('.notification-toast, #timeline, #note')].map((part) =>
  part.id === 'timeline' ? `${part.ariaLabel}, busy: ${part.ariaBusy}`
    : `${part.id || 'message'}${part.hidden ? ' (hidden)' : ''}: ${part.innerText}`)
"""


def keep(test: str, windows: Sequence[tuple[Window, CodeServer]]) -> str:
    """Fill a folder with pictures, texts and logs of the windows of a failed test; returns the gist of it."""
    folder = FOLDER / re.sub(r"\W+", "-", test).strip("-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    gist = [f"More is in {folder}"]
    for number, (window, _) in enumerate(windows):
        gist += [f"-- window {number}", *_keep_window(window, folder / f"window-{number}")]
    servers = {server.url: server for _, server in windows}
    for number, server in enumerate(servers.values()):
        gist += [f"-- VS Code {number}", *_keep_logs(server, folder / f"vs-code-{number}")]
    return "\n".join(gist)


def _keep_window(window: Window, stem: Path) -> list[str]:
    shown = list(_shown(window, stem.with_suffix(".png")))
    stem.with_suffix(".txt").write_text("\n".join([*shown, *window.complaints]))
    return shown


def _shown(window: Window, picture: Path) -> Iterator[str]:
    """What the pages of a window say, while they still say something."""
    from playwright.sync_api import Error as PageError

    try:
        for frame in window.page.frames:
            yield from frame.evaluate(_STATE)
        window.page.screenshot(path=picture, timeout=PICTURE_MS)
    except PageError as error:
        yield f"The window cannot be looked at: {error.message}"


def _keep_logs(server: CodeServer, folder: Path) -> list[str]:
    """Copy logs and settings; returns the end of what the extension wrote."""
    folder.mkdir()
    with suppress(OSError):  # a file that went meanwhile: the others are copied
        shutil.copytree(server.user_data / "logs", folder, dirs_exist_ok=True)
    for name in ("server.log", "User/settings.json", "Machine/settings.json"):
        shutil.copy(server.user_data / name, folder / name.replace("/", "-"))
    logs = sorted(folder.glob("*/exthost*/neuron-tools.*/*.log"), key=lambda log: log.stat().st_mtime)
    return [line for log in logs for line in log.read_text().splitlines()][-MOST_LINES:]
