"""Call: what one rank asks for in a collective or a transfer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import torch

from neuron_tools.frozen import frozen
from neuron_tools.records.program import CollectiveKind


@frozen
class Call:
    """One rank's part.

    Attributes:
        title: As the user calls it, "all_reduce".
        operation: As the published tools spell it, "AllReduce".
        kind: What the link model times it as.
        outputs: Tensors that it writes; the value of its future.
        lists: How many lists of outputs its future has, one after the other in `outputs`.
        values: Moves the values and returns when they are there.
        device: Index of the NeuronCore in this process; None for host tensors.
        elements: Of the larger of this rank's input and output.
        dtype: As torch spells it, without "torch.".
        input_bytes, output_bytes: Of this rank.
        agreed: What must be the same on all ranks besides the title.
        detail: What a message says behind the dtype, " from rank 0".
        timeout: How long to wait for the other ranks; None for the group's own.
        blocks_host: Whether waiting for it holds the host up too, as a barrier does.
        asynchronous: Whether the caller goes on before it is done.
    """

    title: str
    operation: str
    kind: CollectiveKind
    outputs: Sequence[torch.Tensor]
    values: Callable[[], None]
    device: int | None
    elements: int = 0
    dtype: str = ""
    input_bytes: int = 0
    output_bytes: int = 0
    agreed: str = ""
    timeout: timedelta | None = None
    blocks_host: bool = False
    asynchronous: bool = True
    lists: int = 1
    detail: str = ""

    @property
    def byte_count(self) -> int:
        """Bytes of the larger of input and output."""
        return max(self.input_bytes, self.output_bytes)

    @property
    def text(self) -> str:
        """In a message: "all_reduce of 16 float32"."""
        moved = f" of {self.elements} {self.dtype}" if self.dtype else ""
        return f"{self.title}{moved}{self.detail}"


def dtype_name(dtype: torch.dtype) -> str:
    """ "float32" of torch.float32."""
    return str(dtype).removeprefix("torch.")
