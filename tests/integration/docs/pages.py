"""Pages of the documentation as a reader follows them: each code block in order, from an empty folder."""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[3]
_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e[+-]?\d+)?")
NUMBERS_WITHIN = 0.25  # of what a page shows: it tells the tale, the tests of each part hold its figures


@dataclass(frozen=True)
class Block:
    """A code block.

    Attributes:
        language: bash, console, python, sql, ...
        text: What stands in it.
        note: What a comment above it tells the one who runs it: "file: train.py" is written and not run,
            "continues" goes on where the Python block before it ended, of what "exits with 0 or 1" both do,
            "numbers vary" compares words alone, and "not run: why".
        line: Its line in the page.
    """

    language: str
    text: str
    note: str
    line: int


def blocks(page: Path) -> list[Block]:
    """The code blocks of a page, in order."""
    text = page.read_text()
    return [
        Block(found["language"], found["text"], found["note"] or "", text.count("\n", 0, found.start()) + 1)
        for found in _BLOCK.finditer(text)
    ]


def commands(console: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output shown below it; quotes go on over lines."""
    found: list[tuple[str, str]] = []
    for line in console.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
            continue
        command, output = found[-1]
        if command.count('"') % 2 or command.endswith("\\"):
            found[-1] = (f"{command}\n{line}", output)
        else:
            found[-1] = (command, f"{output}{line}\n")
    return found


def missing_lines(shown: str, printed: str, within: float = NUMBERS_WITHIN) -> list[str]:
    """Lines that a page shows and the command did not print.

    Args:
        shown: What the page shows; a line of three dots stands for any.
        printed: What the command printed.
        within: How far numbers may be apart, as a share of those shown; the words must be the same.
    """
    available = [_parts(line) for line in printed.splitlines()]
    missing = []
    for line in shown.splitlines():
        wanted = _parts(line)
        if line.strip() in ("", "...") or any(_alike(wanted, other, within) for other in available):
            continue
        missing.append(line)
    return missing


def _parts(line: str) -> tuple[list[str], list[float]]:
    words = re.sub(r"[\s─-]+", " ", _NUMBER.sub("#", line)).strip().split(" ")
    return words, [float(number.replace(",", "")) for number in _NUMBER.findall(line)]


def _alike(
    shown: tuple[list[str], list[float]], printed: tuple[list[str], list[float]], within: float
) -> bool:
    return shown[0] == printed[0] and all(
        math.isinf(within) or abs(one - other) <= max(within * abs(one), 1.0)
        for one, other in zip(shown[1], printed[1], strict=True)
    )


def memory_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for the simulated driver's tree, in memory as a reader has it: a disk takes seconds."""
    return tempfile.TemporaryDirectory(
        prefix="neuron-docs-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    )


def _family(session: int) -> list[psutil.Process]:
    """What a shell left running, and what that started, in sessions of their own too."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getsid(process.pid) == session:
                found += [process, *process.children(recursive=True)]
    return found


class Reader:
    """Does what a page says, in a folder; what it leaves running ends with it.

    Args:
        folder: Where; empty but for what a page says the reader has.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sessions: list[int] = []
        self._python = ""
        self._devices = memory_folder()
        (folder / ".venv").symlink_to(sys.prefix)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *error: object) -> None:
        left = [process for session in self._sessions for process in _family(session)]
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=30)
        self._devices.cleanup()

    def follow(self, page: Path) -> list[str]:
        """Run the blocks of a page in order; what went wrong, with the line of the block."""
        return [
            f"{page.name}:{block.line}: {problem}" for block in blocks(page) for problem in self._do(block)
        ]

    def _do(self, block: Block) -> list[str]:
        kind, _, about = block.note.partition(": ")
        if kind == "not run":
            return []
        if kind == "file":
            (self.folder / about).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / about).write_text(block.text)
            return []
        if block.language == "bash":
            return self._shell(block.text, may_fail=kind == "exits with 0 or 1")[0]
        if block.language == "python":
            self._python = f"{self._python}\n{block.text}" if kind == "continues" else block.text
            (self.folder / "block.py").write_text(self._python)
            return self._shell("python block.py")[0]
        if block.language == "sql":
            return self._shell(f"neuron-profile query {self._newest_profile()} {shlex.quote(block.text)}")[0]
        if block.language == "console":
            words_only = block.note == "numbers vary"
            return [problem for each in commands(block.text) for problem in self._compared(*each, words_only)]
        return []

    def _newest_profile(self) -> str:
        return max(self.folder.glob("*.nprof"), key=lambda path: path.stat().st_mtime).name

    def _compared(self, command: str, shown: str, words_only: bool) -> list[str]:
        problems, printed = self._shell(command)
        missing = missing_lines(shown, printed, math.inf if words_only else NUMBERS_WITHIN)
        if problems or not missing:
            return problems
        return [f"`{command}` no longer prints {missing}, but:\n{printed[-3000:]}"]

    def _shell(self, script: str, may_fail: bool = False) -> tuple[list[str], str]:
        """Run a script of the shell; how it failed, and what it printed on both channels."""
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "CHECKOUT": str(ROOT),
            "BASH_ENV": str(Path(__file__).with_name("reader.sh")),
            "COLUMNS": "120",
            "NEURON_SYSFS_ROOT": self._devices.name,  # other tests' programs are not on this reader's machine
        }
        with tempfile.TemporaryFile("w+") as output:  # no pipe: what a page leaves running keeps it open
            running = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", script], cwd=self.folder, env=environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            self._sessions.append(running.pid)
            status = running.wait()
            output.seek(0)
            printed = output.read()
        wrong = status not in (0, 1) if may_fail else status != 0
        return [f"{script!r} ended with {status}: {printed[-3000:]}"] if wrong else [], printed
