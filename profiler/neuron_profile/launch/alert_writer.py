"""Writes one alert's profile in a process of its own, beside the command that goes on.

Arguments: the capture's options as JSON, the profile's folder, the reason.
"""

from __future__ import annotations

import sys
from pathlib import Path

from neuron_profile.launch.destination import shown
from neuron_tools.capture.look_back.snapshot import Snapshot, write_snapshot
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.errors import NeuronToolsError


def main(arguments: list[str]) -> int:
    """Write it, and say where it is; what fails becomes one line."""
    options, directory, reason = arguments
    try:
        write_snapshot(Snapshot(CaptureOptions.from_json(options), reason=reason), Path(directory))
    except NeuronToolsError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_status
    print(f"Profile: {shown(Path(directory))}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
