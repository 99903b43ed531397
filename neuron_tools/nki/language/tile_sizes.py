"""`nl.tile_size`: how large tiles may be on the target."""

from __future__ import annotations

from neuron_tools.hardware import NeuronCore
from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.target import default_core


class TileSize:
    """Limits of tiles, of the running kernel's NeuronCore."""

    @property
    def _core(self) -> NeuronCore:
        trace = tracing.running()
        return trace.core if trace is not None else default_core()

    @property
    def pmax(self) -> int:
        """Partitions."""
        return self._core.sbuf_partitions

    @property
    def psum_fmax(self) -> int:
        """fp32 elements of a partition of one PSUM bank."""
        return self._core.psum_bank_bytes // 4

    psum_bank_fmax = psum_fmax

    @property
    def psum_bank_fmax_bytes(self) -> int:
        """Bytes of a partition of one PSUM bank."""
        return self._core.psum_bank_bytes

    @property
    def psum_num_banks(self) -> int:
        """PSUM banks."""
        return self._core.psum_banks

    @property
    def gemm_stationary_fmax(self) -> int:
        """Free elements of a stationary operand."""
        return self._core.tensor_columns

    @property
    def gemm_moving_fmax(self) -> int:
        """Free elements of a moving operand."""
        return self._core.matmul_moving_columns

    @property
    def bn_stats_fmax(self) -> int:
        """Elements per partition of `bn_stats`."""
        return self._core.matmul_moving_columns

    @property
    def psum_min_align(self) -> int:
        """Bytes that addresses in PSUM are multiples of."""
        return 4

    @property
    def sbuf_min_align(self) -> int:
        """Bytes that addresses in SBUF are multiples of."""
        return 1

    @property
    def sbuf_size_bytes(self) -> int:
        """Bytes of SBUF."""
        return self._core.sbuf_bytes

    @property
    def sbuf_fmax_bytes(self) -> int:
        """Bytes of one SBUF partition."""
        return self._core.sbuf_bytes_per_partition

    @property
    def sbuf_fmax(self) -> int:
        """fp32 elements of one SBUF partition."""
        return self._core.sbuf_bytes_per_partition // 4

    @property
    def total_available_sbuf_size(self) -> int:
        """Bytes of one SBUF partition that tiles may take."""
        return self._core.sbuf_bytes_per_partition


tile_size = TileSize()
