"""Writes one alert's profile and its cause in a process of its own, beside the command that goes on.

Arguments: the capture's options as JSON, the profile's folder, the reason.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from neuron_profile.launch.alerts.cause import report_on
from neuron_profile.launch.destination import shown
from neuron_tools.capture.look_back.snapshot import Snapshot, write_snapshot
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.errors import NeuronToolsError

LEAST_NICE = 10  # the command that goes on comes first


def main(arguments: list[str]) -> int:
    """Write it, and say where it is; what fails becomes one line."""
    options, directory, reason = arguments
    os.nice(LEAST_NICE)
    try:
        write_snapshot(Snapshot(CaptureOptions.from_json(options), reason=reason), Path(directory))
        print(f"Profile: {shown(Path(directory))}", file=sys.stderr)
        print(f"Cause: {report_on(Path(directory), reason).sentence}", file=sys.stderr)
    except NeuronToolsError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
