"""What an importer tells the user when a file cannot become a profile."""

from __future__ import annotations

from neuron_tools.errors import NeuronToolsError


class TraceError(NeuronToolsError):
    """A file is no trace that can be read: of no known format, empty, or damaged from the start."""
