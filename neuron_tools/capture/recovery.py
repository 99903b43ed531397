"""Makes the profile of a capture whose recording outlived what assembles it.

The captured processes write logs into the profile's folder `log`; the capture turns them into tables while
they run, and removes them at the end. A capture that was killed, or whose disk was full, leaves them there.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuron_tools.capture.definitions import DefinitionsReader
from neuron_tools.capture.log_lock import is_in_use
from neuron_tools.capture.options import LOG_FOLDER, CaptureOptions, simulated_core
from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.profile.store import layout
from neuron_tools.records.capture_log import LOG_VERSION

if TYPE_CHECKING:
    from neuron_tools.capture.assembler import CaptureReport


class RecoveryError(NeuronToolsError):
    """There is nothing to recover, or not yet, or it cannot be done."""


def recovery_notice(directory: Path) -> str | None:
    """One sentence where a profile does not hold all that was recorded; None where it does."""
    directory = directory.parent if directory.name == layout.MANIFEST_NAME else directory
    log_directory = directory / LOG_FOLDER
    if not _has_log(log_directory):
        return None
    if is_in_use(log_directory):
        return "The capture still runs: what it has recorded is not all here yet."
    command = shlex.join(["neuron-profile", "recover", str(directory)])
    return f"The capture was cut off before all it recorded stood here: run '{command}'."


def recover(directory: Path) -> CaptureReport:
    """Write the profile anew from its logs, then remove them.

    Args:
        directory: The profile, `NAME.nprof`.

    Raises:
        NotAProfileError: It is no profile.
        RecoveryError: It has no logs, or those of another version, its capture still runs, or it does not say
            how it was captured.
        ProfileWriteError: The disk is full or the directory cannot be written; the logs stay.
    """
    directory = (directory.parent if directory.name == layout.MANIFEST_NAME else directory).absolute()
    manifest = layout.read_manifest(directory)
    options = _options(directory, manifest)
    if not _has_log(options.log_directory):
        raise RecoveryError(f"{directory} has no recording beside its tables: there is nothing to recover.")
    if is_in_use(options.log_directory):
        raise RecoveryError(f"{directory} is being recorded: recover it when the captured command has ended.")
    from neuron_tools.capture.assembler import Assembler

    _require_own_version(options.log_directory)
    _remove_unfinished_parts(directory)
    assembler = Assembler(options, _command(manifest), overwrite=True)
    return assembler.finish(complete=True, exit_status=None, recovered=True)


def _options(directory: Path, manifest: Mapping[str, Any]) -> CaptureOptions:
    try:
        options = CaptureOptions(
            directory,
            target=manifest["target"],
            lnc=manifest["lnc"],
            host_clock=manifest["host_clock"],
            settings=tuple(manifest["settings"]),
        )
        simulated_core(options)
    except (KeyError, TypeError, UsageError) as error:
        raise RecoveryError(
            f"{directory / layout.MANIFEST_NAME} does not say how the profile was captured ({error}): "
            "it cannot be recovered."
        ) from error
    return options


def _command(manifest: Mapping[str, Any]) -> list[str]:
    command = manifest.get("command")
    return [str(part) for part in command] if isinstance(command, list) else []


def _has_log(log_directory: Path) -> bool:
    return next(log_directory.glob("process-*"), None) is not None


def _require_own_version(log_directory: Path) -> None:
    """Refuse records that would be misread."""
    for directory in sorted(log_directory.glob("process-*")):
        reader = DefinitionsReader(directory)
        reader.poll()
        if reader.definitions.process.log_version != LOG_VERSION:
            raise RecoveryError(
                f"{directory} was recorded by another version of Neuron Tools: recover it with that version."
            )


def _remove_unfinished_parts(directory: Path) -> None:
    for part in directory.glob(f"*/*{layout.TEMPORARY_SUFFIX}"):
        part.unlink(missing_ok=True)
