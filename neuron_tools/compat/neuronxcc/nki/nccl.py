"""`neuronxcc.nki.nccl`: communication between ranks, in the older dialect's spelling."""

from neuron_tools.nki.missing import missing_name
from neuron_tools.nki.older.collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    collective_permute,
    reduce_scatter,
)

__nki_names__ = True
__all__ = ["all_gather", "all_reduce", "all_to_all", "collective_permute", "reduce_scatter"]
__getattr__ = missing_name("neuronxcc.nki.nccl", "nccl", globals())
