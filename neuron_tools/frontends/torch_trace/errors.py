"""What can go wrong while a model is traced or a traced one called."""

from __future__ import annotations

from neuron_tools.errors import NeuronToolsError


class TraceError(NeuronToolsError):
    """A model cannot be traced, or a traced model was called with other inputs than it was traced for."""


class NothingToRun(TraceError):
    """No operation of a model can run on the device."""
