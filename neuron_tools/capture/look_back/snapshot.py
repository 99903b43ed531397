"""Writes the last seconds of a running look-back capture as a profile."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from neuron_tools.capture.assembler import Assembler, CaptureReport
from neuron_tools.capture.definitions import DefinitionsReader
from neuron_tools.capture.look_back.retained import Retained, kept_still, read_records
from neuron_tools.capture.options import CaptureOptions, from_environment
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen

BLOCK_RECORDS = 65_536


class SnapshotError(NeuronToolsError):
    """There is nothing to make a profile of."""


@frozen
class Snapshot:
    """What a snapshot is made of.

    Attributes:
        options: Of the look-back capture.
        last_ns: Virtual host time before each process's last record; None = all that is kept.
        reason: Why it is made; kept in `profile.json`.
    """

    options: CaptureOptions
    last_ns: int | None = None
    reason: str = ""


def options_of_process(process_id: int) -> CaptureOptions:
    """The options of the look-back capture that a running process is part of.

    Raises:
        SnapshotError: There is no such process, it is another user's, or nothing records it.
    """
    try:
        text = Path(f"/proc/{process_id}/environ").read_bytes()
    except FileNotFoundError:
        raise SnapshotError(f"There is no process {process_id}.") from None
    except PermissionError:
        raise SnapshotError(f"Process {process_id} belongs to another user: run this as that user.") from None
    variables = dict(entry.partition("=")[::2] for entry in os.fsdecode(text).split("\0"))
    options = from_environment(variables)
    if options is None or not options.look_back_s:
        raise SnapshotError(
            f"Nothing records process {process_id}: start it with "
            "'neuron-profile capture --last 30s -- COMMAND', then a snapshot can be taken at any time."
        )
    return options


def write_snapshot(snapshot: Snapshot, directory: Path) -> CaptureReport:
    """Write the kept part of all processes' logs as a profile; the program goes on meanwhile.

    Raises:
        SnapshotError: Nothing has been recorded yet.
        UsageError: The directory exists.
        ProfileWriteError: The disk is full or the directory cannot be written.
    """
    options, logs = snapshot.options, snapshot.options.log_directory
    processes = sorted(logs.glob("process-*"))
    with ExitStack() as stack:
        for process in processes:
            stack.enter_context(kept_still(process, wait=True))
        windows = {process.name: _window(process, snapshot.last_ns) for process in processes}
        if not windows:
            raise SnapshotError(
                "The program has not used the device yet: there is nothing to take a snapshot of."
            )
        assembler = Assembler(
            replace(options, directory=directory, logs=logs), _command(processes), windows=windows
        )
        return assembler.finish(complete=True, exit_status=None, snapshot=_facts(snapshot))


def _facts(snapshot: Snapshot) -> dict[str, Any]:
    last_ns = snapshot.last_ns
    return {"reason": snapshot.reason, "last_s": None if last_ns is None else last_ns / 1e9}


def _command(processes: Sequence[Path]) -> Sequence[str]:
    for process in processes:
        reader = DefinitionsReader(process)
        reader.poll()
        if reader.definitions.process.command:
            return reader.definitions.process.command
    return ()


def _window(process: Path, last_ns: int | None) -> Retained:
    """Where the part of a log begins that the snapshot shows."""
    retained = Retained.of(process)
    if last_ns is None:
        return retained
    records = read_records(process, retained.first_record)
    if not len(records):
        return retained
    ends_ns = np.maximum.accumulate(records["host_end_ns"])
    cut = int(np.searchsorted(ends_ns, int(ends_ns[-1]) - last_ns))
    return retained.advanced(records[:cut])
