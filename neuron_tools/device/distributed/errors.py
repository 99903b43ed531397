"""What can go wrong between ranks; RuntimeErrors too, as torch.distributed's own are."""

from __future__ import annotations

from neuron_tools.errors import NeuronToolsError


class CollectiveError(NeuronToolsError, RuntimeError):
    """A collective failed: the sentence names rank, collective and line."""


class MismatchError(CollectiveError):
    """Ranks of one group issued different collectives."""


class LostRankError(CollectiveError):
    """A rank ended, or did not come within the timeout."""
