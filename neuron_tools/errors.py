"""Errors whose text is meant for the user: what was wrong, where, and what to do."""

from __future__ import annotations


class NeuronToolsError(Exception):
    """Base of every error that a command prints as one plain line.

    Attributes:
        exit_status: What a command exits with: 1 for a failure, 2 for wrong usage.
    """

    exit_status = 1


class UsageError(NeuronToolsError):
    """The user asked for something that cannot be asked for."""

    exit_status = 2


class AlreadyRecordedError(UsageError):
    """A recording was to begin in a process that is being recorded."""
