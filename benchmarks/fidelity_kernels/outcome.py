"""What a simulated execution says about every quantity that sources publish."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuron_tools import hardware
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import Engine, Opcode, Program
from neuron_tools.records.simulation import Simulation
from neuron_tools.simulator import simulate_cores
from neuron_tools.simulator.counters import dma_counters
from neuron_tools.simulator.dma_costs import SHARE, dma_costs, engines_used
from neuron_tools.simulator.instruction_costs import instruction_costs
from neuron_tools.simulator.throughput import union

BUSY_SHARE = 0.55
"""Share of the work that the busiest engine does not hide, in the model without events."""

TENSOR_WORK = (Opcode.LDWEIGHTS, Opcode.MATMUL, Opcode.TRANSPOSE)


@frozen
class Outcome:
    """Programs that ran together, one a core, with their times.

    `work` is what the kernel's mathematics need: FLOPs of a matmul, bytes of a copy.
    """

    core: NeuronCore
    programs: Sequence[Program]
    simulations: Sequence[Simulation]
    work: float

    @property
    def body_ns(self) -> float:
        """First instruction to last completion."""
        return max(simulation.duration_ps for simulation in self.simulations) / 1000.0

    @property
    def profile_ns(self) -> float:
        """What a device profile gives as its total time."""
        return self.core.profile_prologue_ns + self.body_ns + self.core.profile_epilogue_ns

    def quantity(self, name: str) -> float:
        """A quantity by its name in measurements.csv, in that file's units.

        Raises:
            KeyError: No such quantity.
        """
        base = name.removesuffix("_p0").removesuffix("_p10").removesuffix("_p90").removesuffix("_p99")
        if base.endswith("_active_share"):
            return self.quantity(base.replace("_share", "_time")) / self.profile_ns
        return float(_QUANTITIES[base](self))

    def busy_model_ns(self) -> float:
        """The body by a model without events: the busiest engine and a fixed share of the others' work.

        The DMA engines count as one. Published for Inf2 kernels with 9.8 % mean error.
        """
        totals = []
        for program in self.programs:
            intervals, _ = instruction_costs(program.instructions, self.core)
            engine = program.instructions["engine"]
            busy = [float(intervals[engine == one].sum()) for one in Engine]
            moving = dma_costs(program, self.core)["work"].sum() / SHARE / self.core.dma_engines
            busy.append(float(moving))
            totals.append(max(busy) + BUSY_SHARE * (sum(busy) - max(busy)))
        return max(totals) / 1000.0

    def active_ns(self, engine: Engine, opcodes: Sequence[Opcode] = ()) -> float:
        """Mean over the cores of the time in which an engine executes something."""
        times = []
        for program, simulation in zip(self.programs, self.simulations, strict=True):
            rows = program.instructions["engine"] == engine
            if opcodes:
                rows &= np.isin(program.instructions["opcode"], opcodes)
            begin, end = union(simulation.start_ps[rows], simulation.end_ps[rows])
            times.append(float((end - begin).sum()))
        return sum(times) / len(times) / 1000.0

    def dma_active_ns(self) -> float:
        """Mean over the cores of the time in which any DMA moves data."""
        times = []
        for simulation in self.simulations:
            begin, end = union(simulation.dma_start_ps, simulation.dma_end_ps)
            times.append(float((end - begin).sum()))
        return sum(times) / len(times) / 1000.0

    def packet_ns(self) -> float:
        """Time of all packets on all DMA engines, completion semaphores included."""
        total = 0.0
        for program in self.programs:
            costs, engines = dma_costs(program, self.core), engines_used(program.dmas, self.core)
            total += costs["work"].sum() / SHARE / 1000.0 + engines.sum() * self.core.dma_semaphore_ns
        return total

    def moved(self, direction: str) -> float:
        """HBM bytes "read" or "write" of all cores."""
        return sum(float(getattr(dma_counters(p), f"hbm_{direction}_bytes").sum()) for p in self.programs)

    def count(self, engine: Engine, opcode: Opcode | None = None) -> float:
        """Instructions of an engine on all cores."""
        tables = [program.instructions for program in self.programs]
        return sum(
            float(((t["engine"] == engine) & ((opcode is None) | (t["opcode"] == opcode))).sum())
            for t in tables
        )

    def utilisation(self, time_ns: float) -> float:
        """Share of the bf16 peak of all cores."""
        return self.work / (self.core.peak_tensor_flops * len(self.programs) * time_ns * 1e-9)


def execute(programs: Sequence[Program], core: NeuronCore, work: float = 0.0) -> Outcome:
    """Run Programs at the same time on neighbouring cores."""
    return Outcome(core, programs, simulate_cores(programs, hardware.device_of(core)), work)


def core_of(target: str) -> NeuronCore:
    """One physical core of a target."""
    return hardware.get(target, lnc=1)


_QUANTITIES = {
    "latency": lambda o: o.body_ns + o.core.launch_overhead_ns,
    "profile_time": lambda o: o.profile_ns,
    "throughput": lambda o: o.work * len(o.programs) / (o.body_ns * 1e-9),
    "hfu": lambda o: o.utilisation(o.profile_ns),
    "mfu": lambda o: o.utilisation(o.profile_ns),
    "mbu": lambda o: (
        (o.moved("read") + o.moved("write")) / len(o.programs) / (o.core.hbm_bandwidth * o.profile_ns * 1e-9)
    ),
    "hbm_read_bytes": lambda o: o.moved("read"),
    "hbm_write_bytes": lambda o: o.moved("write"),
    "tensor_active_time": lambda o: o.active_ns(Engine.TENSOR, TENSOR_WORK),
    "vector_active_time": lambda o: o.active_ns(Engine.VECTOR),
    "dma_active_time": lambda o: o.dma_active_ns(),
    "dma_packet_time": lambda o: o.packet_ns(),
    "matmul_instructions": lambda o: o.count(Engine.TENSOR, Opcode.MATMUL),
    "tensor_instructions": lambda o: o.count(Engine.TENSOR),
    "vector_instructions": lambda o: o.count(Engine.VECTOR),
}
