"""Captures a compiled artifact: `neuron-profile capture -n FILE.neff`."""

from __future__ import annotations

import shlex
from pathlib import Path

from neuron_profile.launch.destination import find_destination
from neuron_tools.capture.artifact import Repetition, profile_artifact
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.errors import UsageError
from neuron_tools.neff import read_neff

SESSION_SUFFIX = ".ntff"
Chosen = tuple[int | None, str, tuple[str, ...]]
"""Cores per logical core, host clock, settings: as `capture`'s options have them."""


def capture_artifact(
    path: Path,
    output: Path | None,
    target: str | None,
    chosen: Chosen,
    repetition: Repetition,
    arguments: tuple[str, ...] = (),
) -> list[Path]:
    """Execute an artifact and write its profile, or one per profiled execution where AWS's tool does.

    That is where `output` is called NAME.ntff and not every execution is profiled: NAME_exec_N.ntff.

    Args:
        arguments: Of the command that was given, too.

    Returns:
        The profiles' folders.

    Raises:
        UsageError: A command was given too, or an output folder exists.
        NeuronToolsError: The artifact cannot be read, or a profile cannot be written.
    """
    if arguments:
        raise UsageError(
            f"Give either an artifact (-n {path}) or a command ({shlex.join(arguments)}), not both."
        )
    neff = read_neff(path)
    lnc, _, settings = chosen
    cores = neff.program.physical_cores
    if lnc is not None and lnc < cores:
        raise UsageError(
            f"{path} was compiled for {cores} physical cores of a logical NeuronCore: use --lnc {cores}."
        )
    command = ["neuron-profile", "capture", "-n", str(path)]
    folders = []
    for place, repeated in _profiles(output, repetition):
        folders.append(find_destination(place, path.stem, Path.cwd()).absolute())
        options = CaptureOptions(
            folders[-1], target or neff.program.target, lnc or cores, "fixed", settings=settings
        )
        profile_artifact(neff, options, repeated, command)
    return folders


def _profiles(output: Path | None, repetition: Repetition) -> list[tuple[Path | None, Repetition]]:
    """Where each profile goes, and what it is of."""
    if output is None or output.suffix != SESSION_SUFFIX or repetition.profile_every == 1:
        return [(output, repetition)]
    numbers = [number + 1 for number in repetition.profiled]
    return [(output.with_stem(f"{output.stem}_exec_{number}"), Repetition()) for number in numbers]
