"""What ranks tell each other beside the values of a collective: what they issued, where, and when."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from neuron_tools.frozen import frozen

TEXT_BYTES = 208
NOT_TIMED = -1

_DTYPE = np.dtype(
    [
        ("sequence", "<i8"),
        ("fingerprint", "<i8"),
        ("ready_ns", "<i8"),
        ("link_free_ns", "<i8"),
        ("source", "<i8"),
        ("text", f"S{TEXT_BYTES}"),
    ]
)
HEADER_BYTES = _DTYPE.itemsize


@frozen
class Header:
    """One rank's part of an exchange.

    Attributes:
        sequence: Which collective of the group this is for the rank, counted from 0.
        fingerprint: Of what all ranks must agree on.
        ready_ns: Job time at which its inputs are there; NOT_TIMED where it keeps no virtual time.
        link_free_ns: Job time until which its links are known to be taken.
        source: Rank in the group.
        text: What it calls, and at which line: for messages.
    """

    sequence: int
    fingerprint: int
    ready_ns: int
    link_free_ns: int
    source: int
    text: str

    def pack(self) -> torch.Tensor:
        """As a tensor of HEADER_BYTES bytes."""
        row = np.zeros(1, _DTYPE)
        row[0] = (*self._numbers(), self.text.encode("utf-8", "replace")[:TEXT_BYTES])
        return torch.from_numpy(row.view(np.uint8))

    def _numbers(self) -> tuple[int, ...]:
        return self.sequence, self.fingerprint, self.ready_ns, self.link_free_ns, self.source


def fingerprint(text: str) -> int:
    """A number that stands for a text."""
    return zlib.crc32(text.encode())


def empty(count: int) -> list[torch.Tensor]:
    """Room for the headers of `count` ranks."""
    return list(torch.zeros(count, HEADER_BYTES, dtype=torch.uint8, device="cpu").unbind(0))


def unpack(packed: Sequence[torch.Tensor]) -> tuple[Header, ...]:
    """The headers in tensors of HEADER_BYTES bytes."""
    return tuple(_header(each.numpy().view(_DTYPE)[0]) for each in packed)


def _header(row: np.void | npt.NDArray[np.void]) -> Header:
    values: dict[str, Any] = dict(zip(_DTYPE.names or (), row.item()))
    return Header(**values | {"text": values["text"].decode("utf-8", "replace")})


def mismatch(headers: Sequence[Header], ranks: Sequence[int], own: int) -> str | None:
    """A sentence where the ranks of a group issued different collectives, else None.

    Args:
        headers: Of all ranks that run, in the order of the group.
        ranks: Their global ranks.
        own: This rank's place in the group.
    """
    mine = next(each for each in headers if each.source == own)
    other = next((each for each in headers if each.fingerprint != mine.fingerprint), None)
    if other is None:
        return None
    return (
        f"Collective {mine.sequence} of ranks {list(ranks)} does not match: rank {ranks[own]} calls "
        f"{mine.text}, rank {ranks[other.source]} calls {other.text}. Every rank of a group must issue the "
        "same collectives in the same order."
    )
