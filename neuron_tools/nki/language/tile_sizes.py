"""`nl.tile_size`: how large tiles may be on the target."""

from __future__ import annotations

from collections.abc import Callable

from neuron_tools.hardware import NeuronCore
from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.errors import MissingApiError
from neuron_tools.nki.target import default_core


def _limit(meaning: str, of_core: Callable[[NeuronCore], int]) -> property:
    """A limit as the running kernel's NeuronCore has it; the target's outside of kernels."""

    def value(_: TileSize) -> int:
        trace = tracing.running()
        return of_core(trace.core if trace is not None else default_core())

    return property(value, doc=meaning)


class TileSize:
    """Limits of tiles, of the running kernel's NeuronCore."""

    def __getattr__(self, name: str) -> int:
        if name.startswith("__"):
            raise AttributeError(name)
        known = [limit for limit in dir(type(self)) if not limit.startswith("_")]
        raise MissingApiError(f"nl.tile_size has no {name!r}; it has {', '.join(known)}", tracing.where())

    pmax = _limit("Partitions.", lambda core: core.sbuf_partitions)
    psum_fmax = _limit(
        "fp32 elements of a partition of one PSUM bank.", lambda core: core.psum_bank_bytes // 4
    )
    psum_bank_fmax = psum_fmax
    psum_bank_fmax_bytes = _limit("Bytes of a partition of one PSUM bank.", lambda core: core.psum_bank_bytes)
    psum_num_banks = _limit("PSUM banks.", lambda core: core.psum_banks)
    gemm_stationary_fmax = _limit("Free elements of a stationary operand.", lambda core: core.tensor_columns)
    gemm_moving_fmax = _limit("Free elements of a moving operand.", lambda core: core.matmul_moving_columns)
    bn_stats_fmax = _limit("Elements per partition of `bn_stats`.", lambda core: core.matmul_moving_columns)
    psum_min_align = _limit("Bytes that addresses in PSUM are multiples of.", lambda _: 4)
    sbuf_min_align = _limit("Bytes that addresses in SBUF are multiples of.", lambda _: 1)
    sbuf_size_bytes = _limit("Bytes of SBUF.", lambda core: core.sbuf_bytes)
    sbuf_fmax_bytes = _limit("Bytes of one SBUF partition.", lambda core: core.sbuf_bytes_per_partition)
    sbuf_fmax = _limit(
        "fp32 elements of one SBUF partition.", lambda core: core.sbuf_bytes_per_partition // 4
    )
    total_available_sbuf_size = _limit(
        "Bytes of one SBUF partition that tiles may take.", lambda core: core.sbuf_bytes_per_partition
    )


tile_size = TileSize()
