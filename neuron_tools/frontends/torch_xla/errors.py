"""What a program can do wrong on the device `xla`."""

from __future__ import annotations

from neuron_tools.errors import NeuronToolsError


class XlaError(NeuronToolsError, RuntimeError):
    """An operation on the device `xla` cannot be recorded, or the program asked for what is not there."""
