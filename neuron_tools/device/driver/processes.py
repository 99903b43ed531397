"""The files of `processes/`: what each process tells of itself, and whether it still runs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuron_tools.device.driver.counts import CoreCounts, Memory
from neuron_tools.device.driver.page import page_path, read_page

FOLDER = "processes"
FORMAT = 1
LONGEST_TAG = 255
# Field 22 of /proc/PID/stat, counted behind the name, which may hold spaces and parentheses.
_START_TICKS = 19


@dataclass(slots=True)
class PublishedProcess:
    """One process's file.

    Attributes:
        facts: What does not change: command, tag, version, target and so on.
        cores: Its counts by physical core of the instance.
        host_memory: Host memory by category.
        rest: What changes and only this process's readers look at.
    """

    pid: int
    start_ticks: int
    facts: dict[str, Any] = field(default_factory=dict)
    cores: dict[int, CoreCounts] = field(default_factory=dict)
    host_memory: dict[str, Memory] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)

    def as_text(self) -> str:
        """The file's text."""
        return json.dumps(
            {
                "format": FORMAT,
                "pid": self.pid,
                "start_ticks": self.start_ticks,
                **self.facts,
                **self.rest,
                "host_memory": {name: held.as_json() for name, held in self.host_memory.items()},
                "cores": {str(number): core.as_json() for number, core in self.cores.items()},
            },
            separators=(",", ":"),
        )


def parse_process(text: str) -> PublishedProcess:
    """Reads a file's text.

    Raises:
        ValueError: It is cut off, or not of this form.
    """
    try:
        told: Mapping[str, Any] = json.loads(text)
        cores = {int(number): CoreCounts.from_json(core) for number, core in told["cores"].items()}
        host = {name: Memory(**held) for name, held in told["host_memory"].items()}
        rest = {"timing": told.get("timing"), "reserved_cores": told.get("reserved_cores") or []}
        return PublishedProcess(int(told["pid"]), int(told["start_ticks"]), {}, cores, host, rest)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a process's file: {error}") from error


def write_process(root: Path, process: PublishedProcess) -> None:
    """Replaces the process's file as a whole.

    Raises:
        OSError: The folder is gone or full.
    """
    path = f"{root}/{FOLDER}/{process.pid}"
    with open(f"{path}.tmp", "w", encoding="utf-8") as temporary:
        temporary.write(process.as_text())
    os.replace(f"{path}.tmp", f"{path}.json")


def process_file(root: Path, pid: int) -> Path:
    """Where a process's file is."""
    return root / FOLDER / f"{pid}.json"


def read_process(root: Path, pid: int) -> PublishedProcess | None:
    """What a process told last: its file, with the counts of its page; None where it is gone or damaged."""
    try:
        process = parse_process(process_file(root, pid).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    page = read_page(page_path(root, pid))
    if page is not None:
        process.cores = dict(page.cores)
        process.host_memory["application_memory"] = page.application_memory
        process.rest["timing"] = page.is_timed
    return process


def remove_process(root: Path, pid: int) -> None:
    """Removes a process's files."""
    process_file(root, pid).unlink(missing_ok=True)
    process_file(root, pid).with_suffix(".tmp").unlink(missing_ok=True)
    page_path(root, pid).unlink(missing_ok=True)


def published_pids(root: Path) -> list[int]:
    """Processes that have a file, also one that was cut off while it was written."""
    try:
        names = [Path(name).stem for name in os.listdir(root / FOLDER)]
    except OSError:
        return []
    return sorted({int(name) for name in names if name.isdigit()})


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since the machine did; None where there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = text.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else int(fields[_START_TICKS])
    except (OSError, ValueError, IndexError):
        return None


def is_alive(process: PublishedProcess) -> bool:
    """Whether it still runs; a later process with its number is another one."""
    return start_ticks(process.pid) == process.start_ticks
