"""Which running look-back captures an alert is about."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from neuron_tools.capture.look_back.snapshot import SnapshotError, options_of_process
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.frozen import frozen

PROCESSES = Path("/proc")
TAG_VARIABLE = "NEURON_PROCESS_TAG"


@frozen
class Recorded:
    """A process that a look-back capture records.

    Attributes:
        tag: What reports and series call it.
        options: Of the capture, which may record several.
    """

    pid: int
    tag: str
    options: CaptureOptions


def recorded_processes() -> list[Recorded]:
    """Those of this user, in the order of their numbers."""
    found = []
    for pid in sorted(int(path.name) for path in PROCESSES.iterdir() if path.name.isdigit()):
        try:
            found.append(Recorded(pid, _tag(pid), options_of_process(pid)))
        except (SnapshotError, OSError):
            continue
    return [process for process in found if process.options.log_directory.is_dir()]


def _tag(pid: int) -> str:
    variables = (PROCESSES / str(pid) / "environ").read_bytes().split(b"\0")
    prefix = f"{TAG_VARIABLE}=".encode()
    told = [entry.removeprefix(prefix) for entry in variables if entry.startswith(prefix)]
    return os.fsdecode(told[0]) if told else str(pid)


def offenders(labels: Mapping[str, str], recorded: list[Recorded]) -> list[Recorded]:
    """The processes that an alert's labels name, one of each capture; all where they name none."""
    pid, tag = labels.get("pid", ""), labels.get("runtime_tag", "")
    if pid or tag:
        recorded = [each for each in recorded if str(each.pid) == pid or (tag and each.tag == tag)]
    return list({each.options.log_directory: each for each in reversed(recorded)}.values())
