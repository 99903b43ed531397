"""Why an analysis has no result."""

from __future__ import annotations

from neuron_tools.errors import NeuronToolsError


class LacksDataError(NeuronToolsError):
    """A profile does not have what an analysis looks at."""
