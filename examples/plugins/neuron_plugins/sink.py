"""A sink of the monitor: appends reports to the file that `NEURON_REPORTS` names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class FileSink:
    """Made once when the monitor starts."""

    def __init__(self) -> None:
        self._path = Path(os.environ.get("NEURON_REPORTS", "reports.jsonl"))

    def write(self, report: Any) -> None:
        """Append one report as a line."""
        with self._path.open("a") as file:
            file.write(json.dumps(report) + "\n")
