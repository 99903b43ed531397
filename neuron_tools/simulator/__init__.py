"""Event-driven timing of Programs: when every instruction and DMA starts, ends, and why it waited."""

from neuron_tools.simulator.builder import ProgramBuilder, dma_token
from neuron_tools.simulator.check import check
from neuron_tools.simulator.errors import ProgramError
from neuron_tools.simulator.multi_core import simulate_cores
from neuron_tools.simulator.simulation import simulate

__all__ = [
    "ProgramBuilder",
    "ProgramError",
    "check",
    "dma_token",
    "simulate",
    "simulate_cores",
]
