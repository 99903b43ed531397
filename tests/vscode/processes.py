"""The servers that windows of VS Code have started."""

from __future__ import annotations

import psutil

from tests.vscode.code_server import CodeServer


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
