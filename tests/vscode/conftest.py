"""What the tests of the extension share: one real capture, one VS Code with the extension, windows of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.single_cores import single_cores as single_cores
from tests.vscode import code_server, evidence
from tests.vscode.code_server import CodeServer
from tests.vscode.window import Window

OpenWindow = Callable[..., Window]
StartVSCode = Callable[..., CodeServer]
Opened = list[tuple[Window, CodeServer]]
_OPENED = pytest.StashKey[Opened]()
OPERATION = 1030 / 1310
"""Middle of the first framework operation of the tiny profile, as a part of the width of its timeline."""

TRAIN = '''\
"""Trains a small model on the neuron device."""

import sys

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int = 256):
        super().__init__()
        self.first = nn.Linear(width, 4 * width)
        self.second = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(x))
        return self.second(hidden)


def train(steps: int) -> float:
    torch.manual_seed(0)
    model = Model().to("neuron")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(64, 256, device="neuron")
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        print(loss.item())
    return loss.item()


if __name__ == "__main__":
    train(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
'''


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them take seconds, and are chosen by `-m vscode`."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.vscode)
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep what explains a failure while the windows are still there."""
    report = yield
    if report.failed and report.when != "teardown":
        opened: Opened = item.config.stash.get(_OPENED, [])
        report.sections.append(("VS Code", evidence.keep(item.nodeid, opened)))
    return report


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a script and the profile of a real capture of it. Tests leave both as they are."""
    folder = tmp_path_factory.mktemp("project").resolve()
    (folder / "train.py").write_text(TRAIN)
    capture(folder, "train.nprof")
    return folder


def capture(folder: Path, profile: str, *arguments: str) -> None:
    """Capture `train.py` of a folder."""
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "--host-clock", "fixed", "-o", profile]
    subprocess.run(
        [*command, "--", sys.executable, "train.py", *arguments], cwd=folder, check=True, capture_output=True
    )


@pytest.fixture(scope="session")
def extensions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of extensions with ours, installed from its package."""
    code_server.require_code_server()
    return code_server.install_extension(
        code_server.package_extension(), tmp_path_factory.mktemp("extensions")
    )


@pytest.fixture
def start_vs_code(extensions: Path, tmp_path: Path) -> Iterator[StartVSCode]:
    """Starts a VS Code with settings of its own, which runs until the test has ended and was looked into."""
    with ExitStack() as running:

        def start(settings: Mapping[str, Any], *arguments: Any, **more: Any) -> CodeServer:
            server = code_server.running(tmp_path / "user", extensions, settings, *arguments, **more)
            return running.enter_context(server)

        yield start


@pytest.fixture(scope="session")
def vs_code(extensions: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodeServer]:
    """A running VS Code whose extension finds this Python."""
    settings = {"neuron.python": sys.executable}
    with code_server.running(tmp_path_factory.mktemp("user"), extensions, settings) as server:
        yield server


@pytest.fixture
def open_window(vs_code: CodeServer, chromium: Any, request: pytest.FixtureRequest) -> Iterator[OpenWindow]:
    """Opens windows, each with state of its own; they are closed after the test."""
    yield from _windows(vs_code, chromium, request)


@pytest.fixture(scope="module")
def open_shared_window(
    vs_code: CodeServer, chromium: Any, request: pytest.FixtureRequest
) -> Iterator[OpenWindow]:
    """The same, for windows in which several tests of a module look at things."""
    yield from _windows(vs_code, chromium, request)


def _windows(vs_code: CodeServer, chromium: Any, request: pytest.FixtureRequest) -> Iterator[OpenWindow]:
    opened: Opened = request.config.stash.setdefault(_OPENED, [])
    own: Opened = []

    def open_on(folder: Path, server: CodeServer = vs_code) -> Window:
        window = Window(chromium.new_context(viewport={"width": 1500, "height": 950}).new_page(), folder)
        own.append((window, server))
        opened.append((window, server))
        window.open(server.window_url(folder))
        return window

    yield open_on
    for one in own:
        one[0].page.context.close()
        opened.remove(one)


@pytest.fixture
def window(open_window: OpenWindow, project: Path) -> Window:
    """A window on the project."""
    return open_window(project)
