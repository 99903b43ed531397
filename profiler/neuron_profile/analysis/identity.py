"""What a profile is: of which command, on what, and whether it is whole."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from neuron_tools.capture.recovery import recovery_notice
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_PROCESSES = "SELECT process_idx, process_id, command, exit_status FROM ProcessInfo ORDER BY process_idx"


@frozen
class ProcessIdentity:
    """A process of the capture; None where it is not known."""

    process_idx: int
    process_id: int | None
    command: str | None
    exit_status: int | None


@frozen
class Identity:
    """The facts of a profile; empty texts and None where it does not say.

    Attributes:
        host_clock: "measured" or "fixed".
        interrupted: The user stopped the command.
        exit_status: Of the captured command.
        missing: What of it cannot be read, one sentence each.
        formats: Of the traces it was imported from; () for a capture.
    """

    path: Path
    producer: str
    format_version: str
    schema_version: str
    command: str
    target: str
    lnc: int | None
    host_clock: str
    settings: tuple[str, ...]
    complete: bool
    interrupted: bool
    exit_status: int | None
    missing: tuple[str, ...]
    formats: tuple[str, ...]
    processes: tuple[ProcessIdentity, ...]

    @property
    def ended_well(self) -> bool:
        """Whether the captured command ended by itself and without an error, as far as the profile says."""
        return self.complete and not self.interrupted and not self.exit_status

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.name


def identify(profile: Profile) -> Identity:
    """The facts of a profile."""
    facts = profile.metadata
    notice = recovery_notice(profile.path)
    return Identity(
        path=profile.path,
        producer=str(facts.get("producer", "")),
        format_version=str(facts.get("format_version", "")),
        schema_version=str(facts.get("schema_version", "")),
        command=command_text(facts.get("command", ())),
        target=str(facts.get("target", "")),
        lnc=facts.get("lnc"),
        host_clock=str(facts.get("host_clock", "")),
        settings=tuple(map(str, facts.get("settings", ()))),
        complete=profile.complete,
        interrupted=bool(facts.get("interrupted", False)),
        exit_status=facts.get("exit_status"),
        missing=(*profile.missing, *([notice] if notice else [])),
        formats=tuple(map(str, facts.get("formats", ()))),
        processes=profile.whole.kept("processes", lambda: _processes(profile.whole)),
    )


def _processes(profile: Profile) -> tuple[ProcessIdentity, ...]:
    return tuple(ProcessIdentity(**row) for row in profile.query(_PROCESSES).to_pylist())


def command_text(command: Sequence[str] | str) -> str:
    """A command as it would be typed."""
    return command if isinstance(command, str) else shlex.join(map(str, command))
