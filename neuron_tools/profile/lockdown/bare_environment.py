"""The environment of processes that read what cannot be trusted: what Python needs, no secrets."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "PYTHONHOME")


def bare_environment(further: Iterable[str] = ()) -> dict[str, str]:
    """The variables that Python needs; none of the user's secrets.

    Args:
        further: Names of others that the process is to have, where they are set.
    """
    kept = {name: os.environ[name] for name in (*KEPT_VARIABLES, *further) if name in os.environ}
    packages = [str(Path(__file__).parents[3]), *(path for path in sys.path if path.endswith("-packages"))]
    return {**kept, "PYTHONPATH": os.pathsep.join(packages), "NEURON_TOOLS_AUTOSTART": "0"}
