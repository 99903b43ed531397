"""What can go wrong between ranks; RuntimeErrors too, as torch.distributed's own are."""

from __future__ import annotations

from neuron_tools.errors import NeuronToolsError


class CollectiveError(NeuronToolsError, RuntimeError):
    """A collective failed: the sentence names rank, collective and line."""


class InvalidCallError(CollectiveError, ValueError):
    """A collective was called with tensors or ranks that it cannot take."""


class MismatchError(CollectiveError):
    """Ranks of one group issued different collectives."""


class UnequalSplitsError(CollectiveError):
    """In an all_to_all one rank sends another more or less than that takes.

    Attributes:
        sender, receiver: Places in the group.
    """

    def __init__(self, sender: int, receiver: int, sent: int, taken: int) -> None:
        super().__init__(f"{sent} elements are sent, {taken} taken")
        self.sender, self.receiver, self.sent, self.taken = sender, receiver, sent, taken


class LostRankError(CollectiveError):
    """A rank ended, or did not come within the timeout."""
