"""The live accesses of each bucket of a buffer's lines, as linked lists, for compiled searches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Int32s, Ints
from neuron_tools.compiled import compiled, compiled_part

Bounds = tuple[int, int, int, int]
BUCKET_LINES = 128
"""Lines of a tensor whose accesses are kept together."""


@compiled_part
def region_of(rows: Int32s, regions: Int32s, tracked: npt.NDArray[np.bool_], row: int, operand: int) -> int:
    """The region of a row's operand; -1 where it has none, or of a buffer whose accesses cannot conflict."""
    region = int(rows[row, 3 + operand])
    return region if region >= 0 and tracked[regions[region, 0]] else -1


@compiled_part
def bucket_range(bucket_start: Ints, regions: Int32s, region: int) -> tuple[int, int, int, bool]:
    """Where what conflicts with an access may be kept.

    Args:
        bucket_start: (buffers + 1,) buckets of each buffer; the last bucket of a buffer is for accesses over
            several.
        regions: (m, 5) buffer, lines and bytes of each region.
        region: Row of `regions`.

    Returns:
        First and last bucket, the bucket for accesses over several, and whether this is one of those.
    """
    buffer = regions[region, 0]
    start, several = bucket_start[buffer], bucket_start[buffer + 1] - 1
    first = start + regions[region, 1] // BUCKET_LINES
    last = start + (regions[region, 2] - 1) // BUCKET_LINES
    spans = first != last or first >= several
    if spans:
        first, last = start, several - 1
    return first, last, several, spans


@compiled_part
def bounds_of(regions: Int32s, region: int) -> Bounds:
    """(first line, end of lines, first byte, end of bytes)."""
    return regions[region, 1], regions[region, 2], regions[region, 3], regions[region, 4]


@compiled
def overlap(bounds: Bounds, other: Bounds) -> bool:
    """Whether two regions of a buffer have a byte in common."""
    return other[0] < bounds[1] and bounds[0] < other[1] and other[2] < bounds[3] and bounds[2] < other[3]


@compiled
def covers(outer: Bounds, inner: Bounds) -> bool:
    """Whether one region of a buffer has all bytes of another."""
    return outer[0] <= inner[0] and inner[1] <= outer[1] and outer[2] <= inner[2] and inner[3] <= outer[3]


@compiled
def unlink(head: Int32s, link: Int32s, bucket: int, previous: int, node: int) -> None:
    """Take a node out of its bucket's list; `previous` is -1 where it is the first."""
    if previous >= 0:
        link[previous] = link[node]
    else:
        head[bucket] = link[node]
