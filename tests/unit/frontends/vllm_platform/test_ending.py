"""A server of asyncio tasks with the order of events that vLLM's has."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from neuron_tools.frontends.vllm_platform.ending import end_undisturbed, stop_reader_first

ENGINE = """
import signal, sys

def run():
    try:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit())
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
        print("written", flush=True)
"""


class Resources:
    """Closes the connection on its loop: whoever waits for an answer is told that the engine is dead."""

    def __init__(self) -> None:
        self.loop, self.answers = asyncio.get_running_loop(), asyncio.Queue[Exception]()

    def __call__(self) -> None:
        self.loop.call_soon_threadsafe(self.answers.put_nowait, RuntimeError("the engine is dead"))
        self.wait_for_loop()

    def wait_for_loop(self) -> None:
        """As long as the loop is quicker than the thread that ends the server."""
        passed = threading.Event()
        for _ in range(3):
            passed.clear()
            self.loop.call_soon_threadsafe(passed.set)
            passed.wait()


class Core:
    def __init__(self) -> None:
        self.resources = Resources()


class Server:
    def __init__(self, core: Any) -> None:
        self.engine_core, self.errors = core, list[str]()
        self.output_handler = asyncio.create_task(self.read())

    async def read(self) -> None:
        self.errors.append(str(await self.engine_core.resources.answers.get()))

    def shutdown(self, timeout: float | None = None) -> None:
        self.engine_core.resources()
        self.engine_core.resources.loop.call_soon_threadsafe(self.output_handler.cancel)


def cancel(task: asyncio.Task[None]) -> None:
    task.get_loop().call_soon_threadsafe(task.cancel)


def end_a_server(server: type[Server], *, dies: bool = False) -> list[str]:
    async def serve() -> list[str]:
        serving = server(Core())
        await asyncio.sleep(0)
        ending = serving.engine_core.resources if dies else serving.shutdown
        await asyncio.to_thread(ending)
        await asyncio.gather(serving.output_handler, return_exceptions=True)
        return serving.errors

    with ThreadPoolExecutor(1) as pool:  # the tests' own thread may run a loop already
        return pool.submit(asyncio.run, serve()).result()


@pytest.fixture
def mended(monkeypatch: pytest.MonkeyPatch) -> type[Server]:
    monkeypatch.setattr(Server, "shutdown", Server.shutdown)
    monkeypatch.setattr(Resources, "__call__", Resources.__call__)
    for _ in range(2):  # each engine's settings ask for it
        stop_reader_first(Server, Resources, cancel)
    return Server


def test_a_server_that_is_told_to_end_does_not_take_its_engine_for_dead(mended: type[Server]) -> None:
    assert end_a_server(mended) == []


def test_an_engine_that_dies_is_still_told_of(mended: type[Server]) -> None:
    assert end_a_server(mended, dies=True) == ["the engine is dead"]


def test_without_the_order_the_model_of_this_test_tells_of_a_dead_engine() -> None:
    assert end_a_server(Server) == ["the engine is dead"]


def run_engine(folder: Path, before: str) -> subprocess.CompletedProcess[str]:
    (folder / "engine.py").write_text(ENGINE)
    command = [sys.executable, "-c", f"import engine; {before}; engine.run()"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_an_engine_that_is_told_to_end_twice_writes_the_rest_of_its_profile(tmp_path: Path) -> None:
    module = end_undisturbed.__module__
    mended = run_engine(tmp_path, f"import {module} as ending; ending.end_undisturbed(engine)")
    assert (mended.returncode, mended.stdout) == (0, "written\n")
    assert run_engine(tmp_path, "pass").returncode == -signal.SIGTERM
