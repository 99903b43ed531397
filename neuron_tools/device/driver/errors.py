"""Errors of the simulated driver."""

from neuron_tools.errors import NeuronToolsError


class DriverError(NeuronToolsError):
    """The simulated driver's tree cannot be made or used."""
