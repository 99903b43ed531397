"""Captures a compiled artifact: `neuron-profile capture -n FILE.neff`."""

from __future__ import annotations

import shlex
from pathlib import Path

from neuron_profile.launch.destination import find_destination
from neuron_tools.capture.artifact import Repetition, profile_artifact
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.errors import UsageError
from neuron_tools.neff import read_neff

Chosen = tuple[str, str, tuple[str, ...]]
"""Cores per logical core, host clock, settings: as `capture`'s options have them."""


def capture_artifact(
    path: Path,
    output: Path | None,
    target: str | None,
    chosen: Chosen,
    repetition: Repetition,
    arguments: tuple[str, ...],
) -> Path:
    """Execute an artifact and write its profile; returns the profile's folder.

    Raises:
        UsageError: A command was given too, or the output folder exists.
        NeuronToolsError: The artifact cannot be read, or the profile cannot be written.
    """
    if arguments:
        raise UsageError(
            f"Give either an artifact (-n {path}) or a command ({shlex.join(arguments)}), not both."
        )
    neff = read_neff(path)
    lnc, _, settings = chosen
    directory = find_destination(output, path.stem, Path.cwd()).absolute()
    options = CaptureOptions(directory, target or neff.program.target, int(lnc), "fixed", settings=settings)
    profile_artifact(neff, options, repetition, ["neuron-profile", "capture", "-n", str(path)])
    return directory
