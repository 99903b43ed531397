"""The process that imports foreign traces for another: it gives away all but one folder, and reads them.

Started by `import_process`. A JSON line on standard input says what to import; JSON lines on standard output
tell how far the import is, and at last what it made or why it could not. It ends with whoever started it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from threading import Thread, main_thread
from typing import Any, TextIO

from neuron_tools.command_line import cleaning_up_when_terminated, describe
from neuron_tools.profile.importers import import_traces
from neuron_tools.profile.lockdown.own_process import give_away_all_but


def main() -> None:
    """Import what is asked for."""
    told = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what is read must not speak there
    request = json.loads(sys.stdin.readline())
    give_away_all_but([Path(request["destination"]).parent])
    with cleaning_up_when_terminated():
        Thread(target=_end_with_the_other_side, daemon=True).start()
        _tell(told, **_imported(request, told))


def _imported(request: dict[str, Any], told: TextIO) -> dict[str, Any]:
    def progress(done: int, total: int) -> None:
        _tell(told, done=done, of=total)

    try:
        report = import_traces(
            request["paths"], request["destination"], progress=progress, arguments=request["arguments"]
        )
    except Exception as error:  # whatever a trace leads to is told
        return {"error": describe(error)[0]}
    return {
        "formats": report.formats,
        "rows": report.rows,
        "warnings": report.warnings,
    }


def _tell(told: TextIO, **words: Any) -> None:
    told.write(json.dumps(words) + "\n")
    told.flush()


def _end_with_the_other_side() -> None:
    """End when whoever asked has ended, also in the middle of a trace."""
    os.read(sys.stdin.fileno(), 1)
    signal.pthread_kill(main_thread().ident or 0, signal.SIGTERM)


if __name__ == "__main__":
    main()
