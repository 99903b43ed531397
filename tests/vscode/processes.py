"""The servers that windows of VS Code have started."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

from tests.vscode.code_server import CodeServer

TIMEOUT_S = 120.0


def until(question: Callable[[], bool]) -> None:
    """Wait until a question about processes is answered with yes."""
    end = time.monotonic() + TIMEOUT_S
    while not question():
        assert time.monotonic() < end, f"waited {TIMEOUT_S:g} s in vain"
        time.sleep(0.05)


def servers(vs_code: CodeServer) -> set[int]:
    """Process ids of the Explorers among the children of a VS Code."""
    return {process.pid for process in _children(vs_code) if "neuron_explorer.api.serve" in _command(process)}


def _children(vs_code: CodeServer) -> list[psutil.Process]:
    try:
        return psutil.Process(vs_code.process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
