"""Bandwidth of the memories on a core, SBUF and PSUM, from its engines' lanes and clocks.

AWS publishes no figure for either (the NKI guide says of SBUF "about 20 times HBM"). What all that reaches a
memory moves together when each runs at its full rate is the most that a program can see of it, and needs no
figure of its own.
"""

from __future__ import annotations

from neuron_tools.hardware.instruction_costs import performance_modes
from neuron_tools.hardware.neuron_core import NeuronCore

ELEMENT_BYTES = 4  # of one fp32 element, which a lane takes in and gives out each cycle
MATRIX_BYTES = 2  # of one bf16 element, of which a row of the Tensor engine takes one each cycle
GHZ = 1e9


def sbuf_bandwidth(core: NeuronCore) -> float:
    """Bytes per second, read and written: Tensor reads, the elementwise engines do both, and DMA."""
    vector = core.vector_lanes * core.vector_clock_ghz * 2 * _vector_bytes(core)
    others = core.scalar_lanes * core.scalar_clock_ghz + core.gpsimd_lanes * core.gpsimd_clock_ghz
    tensor = core.tensor_rows * core.tensor_clock_ghz * MATRIX_BYTES
    return (vector + others * 2 * ELEMENT_BYTES + tensor) * GHZ + core.dma_bandwidth


def psum_bandwidth(core: NeuronCore) -> float:
    """Bytes per second, read and written: Tensor writes fp32 sums, Vector and Scalar do both."""
    tensor = core.tensor_columns * core.tensor_clock_ghz
    elementwise = core.vector_lanes * core.vector_clock_ghz + core.scalar_lanes * core.scalar_clock_ghz
    return (tensor + 2 * elementwise) * ELEMENT_BYTES * GHZ


def _vector_bytes(core: NeuronCore) -> float:
    """Bytes that a lane of the Vector engine takes from SBUF each cycle in its fastest mode."""
    modes = performance_modes()
    speeds = ((modes.get((core.generation, "copy", f"sbuf_{bits}bit"), 1.0), bits // 8) for bits in (16, 32))
    return max(ELEMENT_BYTES, *(speed * size for speed, size in speeds))
