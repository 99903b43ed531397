"""Bounds of the latency histograms: eight between two powers of two."""

from __future__ import annotations

STEPS = 8
BUCKETS = 62 * STEPS


def bucket_of(ns: int) -> int:
    """The number of the bucket of a time; as `latency_bucket` in `csrc/activity.h`."""
    if ns < STEPS:
        return max(ns, 0)
    exponent = ns.bit_length() - 1
    return (exponent - 2) * STEPS + (ns >> (exponent - 3) & (STEPS - 1))


def upper_bound_ns(bucket: int) -> int:
    """The longest time of a bucket."""
    if bucket < STEPS:
        return bucket
    exponent, step = bucket // STEPS + 2, bucket % STEPS
    return (STEPS + step + 1 << exponent - 3) - 1
