"""Imports foreign traces in a process of its own (`import_child`), for programs that have more to lose."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.import_profile import ImportReport, Progress
from neuron_tools.profile.lockdown.bare_environment import bare_environment
from neuron_tools.profile.lockdown.query_worker import Interrupting, no_interrupt

MODULE = "neuron_tools.profile.lockdown.import_child"
FOLDER_VARIABLES = ("HOME", "TMPDIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
LONGEST_LINE = 16 << 20
PATIENCE_S = 10.0
"""For a process that is told to end to remove what it has written."""


def import_apart(
    paths: Sequence[str | Path],
    destination: str | Path,
    *,
    progress: Progress | None = None,
    interrupting: Interrupting | None = None,
    arguments: bool = True,
) -> ImportReport:
    """As `import_traces`, in a process that has no network, no other programs, and one folder to write into.

    Args:
        paths: See `import_traces`.
        destination: The profile to make, where nothing stands.
        progress: Told (files read, files in all).
        interrupting: Given what stops the import; entered while it runs.
        arguments: See `import_traces`.

    Raises:
        TraceError: A file is in no known format, nothing of it can be used, or the process ended.
    """
    made = Path(destination).absolute()
    sources = [str(Path(path).absolute()) for path in paths]
    request = {"paths": sources, "destination": str(made), "arguments": arguments}
    with subprocess.Popen(
        [sys.executable, "-m", MODULE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, cwd="/", env=bare_environment(FOLDER_VARIABLES), text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            with (interrupting or no_interrupt)(process.terminate):
                told = _last_word(process, request, progress)
            with _answering():
                return _report(told, made)
        finally:
            _end(process)


def _last_word(
    process: subprocess.Popen[str], request: dict[str, Any], progress: Progress | None
) -> dict[str, Any]:
    """Ask for the import; pass on how far it is until it tells how it ended.

    Raises:
        TraceError: It ended without a word, or with one that is no answer.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
    except BrokenPipeError:  # it has ended: what it told is read, and what it was not sent is dropped
        with suppress(BrokenPipeError):
            process.stdin.close()
    while (line := process.stdout.readline(LONGEST_LINE)).endswith("\n"):
        with _answering():
            told = dict(json.loads(line))
            if "done" not in told:
                return told
            done, total = int(told["done"]), int(told["of"])
        if progress is not None:
            progress(done, total)
    raise TraceError("The process that reads the trace ended: it may need more memory than there is.")


@contextmanager
def _answering() -> Iterator[None]:
    """Take what the process says for an answer.

    Raises:
        TraceError: It is none.
    """
    try:
        yield
    except (ValueError, LookupError, TypeError) as error:
        raise TraceError(f"The process that reads the trace gave no answer: {error}.") from error


def _report(told: dict[str, Any], destination: Path) -> ImportReport:
    if "error" in told:
        raise TraceError(str(told["error"]))
    return ImportReport(
        path=destination,
        formats=dict(told["formats"]),
        rows=dict(told["rows"]),
        warnings=tuple(told["warnings"]),
    )


def _end(process: subprocess.Popen[str]) -> None:
    """Have the process end, and remove what it has begun."""
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
