"""Charged time on an axis: which operation each moment of a NeuronCore is charged to, without overlap.

The rule is that of `charges`: a moment belongs to the first tier with an active span. Where spans of
several operations are active in that tier, the stretch in which they are is cut into one piece for each, as
long as its share. So the pieces of an operation are as long together as what it is charged with.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.time.pieces_kernel import lay_out
from neuron_tools.arrays import Floats, Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.exposure import OrderedSpans


@frozen
class Pieces:
    """Stretches of time that do not overlap, in order; arrays of shape (pieces,).

    Attributes:
        key: What each is charged to.
    """

    start_ns: Floats
    end_ns: Floats
    key: Ints

    def chosen(self, mask: npt.NDArray[np.bool_]) -> Pieces:
        """Some of the pieces."""
        return Pieces(self.start_ns[mask], self.end_ns[mask], self.key[mask])

    def cut(self, begin_ns: int, end_ns: int) -> Pieces:
        """What of the pieces lies in a range."""
        low = int(np.searchsorted(self.end_ns, begin_ns, "right"))
        high = int(np.searchsorted(self.start_ns, end_ns, "left"))
        start, end = np.maximum(self.start_ns[low:high], begin_ns), np.minimum(self.end_ns[low:high], end_ns)
        return Pieces(start, end, self.key[low:high])


def pieces_of(spans: OrderedSpans, keys: Ints) -> Pieces:
    """The stretches that each key has of the time of spans.

    Args:
        keys: What each span is charged to, over all tiers, (spans,).
    """
    return Pieces(
        *lay_out(spans.start_ns, spans.end_ns, spans.tier, spans.by_start, spans.by_end, keys, spans.tiers)
    )


def _changes(values: Ints) -> npt.NDArray[np.bool_]:
    """Whether each value differs from the one before it; the first does."""
    changed = np.ones(len(values), bool)
    changed[1:] = values[1:] != values[:-1]
    return changed


def merged(pieces: Pieces) -> Pieces:
    """Pieces of one key that follow each other without a gap as one."""
    if not len(pieces.key):
        return pieces
    gap = np.ones(len(pieces.key), bool)
    gap[1:] = pieces.start_ns[1:] - pieces.end_ns[:-1] > 1e-3
    opens = np.flatnonzero(_changes(pieces.key) | gap)
    closes = np.append(opens[1:], len(pieces.key)) - 1
    return Pieces(pieces.start_ns[opens], pieces.end_ns[closes], pieces.key[opens])


def divided(pieces: Pieces, mixtures: Sequence[tuple[Ints, Floats]], first: int) -> Pieces:
    """Pieces of mixtures cut into those of their keys, each as long as its share.

    Args:
        mixtures: (keys, shares) of each; the shares sum to 1.
        first: Key of the first mixture; the others follow.
    """
    if not mixtures or not len(pieces.key):
        return pieces
    mixed = np.maximum(pieces.key - first, -1)
    sizes = np.array([1, *(len(keys) for keys, _ in mixtures)])
    begins = np.concatenate([[0], np.cumsum(sizes)])
    shares = np.concatenate([np.ones(1), *(share for _, share in mixtures)])
    ends = np.concatenate([np.ones(1), *(np.cumsum(share) for _, share in mixtures)])
    keys = np.concatenate([[0], *(key for key, _ in mixtures)])
    count = sizes[mixed + 1]
    offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    at = np.repeat(begins[mixed + 1], count) + offset
    start, length = (np.repeat(each, count) for each in (pieces.start_ns, pieces.end_ns - pieces.start_ns))
    key = np.where(np.repeat(mixed, count) < 0, np.repeat(pieces.key, count), keys[at])
    return merged(Pieces(start + length * (ends[at] - shares[at]), start + length * ends[at], key))
