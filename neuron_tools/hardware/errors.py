"""Errors of the hardware catalogue."""

from __future__ import annotations

from neuron_tools.errors import UsageError


class UnknownTargetError(UsageError):
    """A target, chip or instance that the catalogue does not know."""


class UnknownFigureError(UsageError):
    """A setting that names no figure of a NeuronCore, or a value that is not a number."""
