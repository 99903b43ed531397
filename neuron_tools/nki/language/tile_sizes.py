"""`nl.tile_size`: how large tiles may be on the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from neuron_tools.hardware import NeuronCore
from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.target import default_core

LIMITS: Mapping[str, Callable[[NeuronCore], int]] = {
    "pmax": lambda core: core.sbuf_partitions,
    "psum_fmax": lambda core: core.psum_bank_bytes // 4,  # fp32 elements of a partition of one bank
    "psum_bank_fmax": lambda core: core.psum_bank_bytes // 4,
    "psum_bank_fmax_bytes": lambda core: core.psum_bank_bytes,
    "psum_num_banks": lambda core: core.psum_banks,
    "psum_min_align": lambda core: 4,  # bytes, as `sbuf_min_align`
    "gemm_stationary_fmax": lambda core: core.tensor_columns,
    "gemm_moving_fmax": lambda core: core.matmul_moving_columns,
    "bn_stats_fmax": lambda core: core.matmul_moving_columns,
    "sbuf_min_align": lambda core: 1,
    "sbuf_size_bytes": lambda core: core.sbuf_bytes,
    "sbuf_fmax": lambda core: core.sbuf_bytes_per_partition // 4,  # fp32 elements of a partition
    "sbuf_fmax_bytes": lambda core: core.sbuf_bytes_per_partition,
    "total_available_sbuf_size": lambda core: core.sbuf_bytes_per_partition,
}
"""Each limit of a NeuronCore; `fmax` counts free elements of a partition."""


class TileSize:
    """Limits of tiles, of the running kernel's NeuronCore, as attributes."""

    def __getattr__(self, name: str) -> int:
        """A limit.

        Raises:
            AttributeError: There is none of that name.
        """
        if name not in LIMITS:
            raise AttributeError(f"nl.tile_size has no {name}; it has {', '.join(LIMITS)}")
        trace = tracing.running()
        return LIMITS[name](trace.core if trace is not None else default_core())

    def __dir__(self) -> list[str]:
        """The limits' names."""
        return list(LIMITS)


tile_size = TileSize()
