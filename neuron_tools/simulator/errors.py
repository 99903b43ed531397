"""Errors of Programs: each names the instruction and the source line it came from."""

from __future__ import annotations

from neuron_tools.errors import NeuronToolsError


class ProgramError(NeuronToolsError):
    """A Program that no NeuronCore could run: a deadlock, an illegal tile, a bad reference."""
