"""Opens what a user names: a profile, or another tool's trace, imported for as long as it is open."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neuron_tools import open_profile
from neuron_tools.profile.lockdown.import_process import import_apart
from neuron_tools.profile.reader import Profile


@contextmanager
def open_trace_or_profile(path: str) -> Iterator[Profile]:
    """The profile, or that of the trace.

    Args:
        path: Folder of a profile or its address, or the file of a trace.

    Raises:
        TraceError: The file is in no known format.
    """
    if not Path(path).is_file():
        with open_profile(path) as opened:
            yield opened
        return
    with tempfile.TemporaryDirectory(prefix="neuron-tools-") as folder:
        imported = Path(folder) / f"{Path(path).name}.nprof"
        import_apart([path], imported)
        with open_profile(imported) as opened:
            yield opened
