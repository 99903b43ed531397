"""One clock for many files: how far each rank's clock is from the first one's, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.importers.recording import Recording

FEWEST_COLLECTIVES = 5
"""Matched operations needed before their ends say anything about the clocks."""


@frozen
class Relation:
    """How one file's times become the profile's.

    Attributes:
        offset_ns: What to add to them.
        uncertainty_ns: Bound on its error; None if not known.
        is_related: Whether the offset relates the file to the others at all.
    """

    offset_ns: int
    uncertainty_ns: int | None
    is_related: bool


@frozen
class RelatedClocks:
    """Relations of all files, in their order.

    Attributes:
        start_unix_ns: The profile's start since 1970-01-01 UTC; None if not known.
        description: One sentence on how the clocks were related.
        warnings: What the user must know when comparing times of different files.
    """

    relations: tuple[Relation, ...]
    start_unix_ns: int | None
    description: str
    warnings: tuple[str, ...] = ()


def relate(recordings: Sequence[Recording]) -> RelatedClocks:
    """Puts all files on the clock of the first, whose times come to start at 0.

    Files of one host that count from 1970 share a clock. Those of others are corrected by the ends of the
    collectives that both took part in: an offset that brings matched ends together, the median of their
    differences; half their spread (5th to 95th percentile) is its uncertainty. Without either, each
    file starts at 0 on its own and the profile says so.
    """
    shifts: list[tuple[int, int | None, bool]] = []
    warnings: list[str] = []
    reference = recordings[0]
    for recording in recordings:
        shifts.append(_shift(reference, recording, warnings))
    start = min((r.first_ns or 0) + shift for r, (shift, _, related) in zip(recordings, shifts) if related)
    relations = tuple(
        Relation(shift - start, uncertainty, True)
        if related
        else Relation(-(recording.first_ns or 0), None, False)
        for recording, (shift, uncertainty, related) in zip(recordings, shifts)
    )
    unix = None if reference.clock.unix_ns is None else reference.clock.unix_ns + start
    return RelatedClocks(relations, unix, _description(relations), tuple(warnings))


def _shift(reference: Recording, other: Recording, warnings: list[str]) -> tuple[int, int | None, bool]:
    """What to add to the other's times to get the reference's; its uncertainty; whether that is known."""
    if other is reference:
        return 0, 0, True
    by_epoch = _epoch_shift(reference, other)
    if by_epoch is not None and reference.clock.host is not None and reference.clock.host == other.clock.host:
        return by_epoch, 0, True
    by_collectives = _collective_shift(reference, other, by_epoch)
    if by_collectives is not None:
        return (*by_collectives, True)
    if by_epoch is not None:
        warnings.append(
            f"{other.source.name}: its times are compared with those of {reference.source.name} by the "
            "hosts' own clocks, whose difference is not known."
        )
        return by_epoch, None, True
    warnings.append(
        f"{other.source.name}: its clock cannot be related to that of {reference.source.name}; it starts "
        "at 0 on its own, and times of the two must not be compared."
    )
    return 0, None, False


def _epoch_shift(reference: Recording, other: Recording) -> int | None:
    if reference.clock.unix_ns is None or other.clock.unix_ns is None:
        return None
    return other.clock.unix_ns - reference.clock.unix_ns


def _collective_shift(reference: Recording, other: Recording, by_epoch: int | None) -> tuple[int, int] | None:
    """Median difference of matched collective ends and half its spread; None where too few match."""
    differences = [
        ends - other.collectives[kind]
        for kind, ends in reference.collectives.items()
        if kind in other.collectives and len(ends) == len(other.collectives[kind])
    ]
    matched: Ints = np.concatenate(differences) if differences else np.zeros(0, np.int64)
    if len(matched) < FEWEST_COLLECTIVES:
        return None
    low, middle, high = (int(value) for value in np.percentile(matched - matched[0], [5, 50, 95]))
    return int(matched[0]) + middle, (high - low) // 2 + 1


def _description(relations: Sequence[Relation]) -> str:
    if len(relations) == 1:
        return "the trace's own"
    if not all(relation.is_related for relation in relations):
        return "several, not all related to each other"
    if any(relation.uncertainty_ns is None for relation in relations):
        return "the hosts' own clocks"
    return "one, related by shared events"
