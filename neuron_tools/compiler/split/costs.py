"""What sharing costs by estimate: work of one core, and what the cores tell each other through HBM."""

from __future__ import annotations

import math
from dataclasses import dataclass

from neuron_tools.compiler.codegen.types import memory_dtype
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import BARRIER, ELEMENTWISE
from neuron_tools.compiler.split.strategy import CORES, WHOLE, Strategy
from neuron_tools.compiler.views import LAZY_OPCODES
from neuron_tools.hardware.neuron_core import NeuronCore

_FREE = LAZY_OPCODES | {BARRIER}
_TRANSFERS = 3
"""Of what crosses: one core stores, tells the other, which loads."""
_APART = 0.25
"""Share of the shorter of loading and computing that the other does not hide, by estimate."""


@dataclass(eq=False)
class Costs:
    """Estimates in nanoseconds.

    Args:
        module: What is split.
        core: A physical core.
    """

    module: Module
    core: NeuronCore

    def __post_init__(self) -> None:
        core = self.core
        self._given = _given(self.module)
        self._elements_per_ns = core.vector_lanes * core.vector_clock_ghz
        self._bytes_per_ns = min(core.dma_bandwidth, core.hbm_bandwidth) * 1e-9
        self._transfer_ns = (
            core.dma_hardware_read_delay_ns + core.dma_read_startup_ns + core.dma_semaphore_ns
            + core.dma_semaphore_latency_ns
        )  # fmt: skip

    def work_ns(self, operation: Operation, strategy: Strategy) -> float:
        """Time of one core: computing or loading, whichever is longer, and what it does not hide."""
        compute = self._compute_ns(operation) / (CORES if strategy.is_shared else 1)
        loaded = sum(
            self.bytes_of(value) / (1 if axis == WHOLE else CORES)
            for value, axis in zip(operation.operands, strategy.operands)
            if value in self._given
        )
        load = loaded / self._bytes_per_ns
        return max(compute, load) + _APART * min(compute, load)

    def exchange_ns(self, value: int, before: int, after: int) -> float:
        """Time until both cores have a value in another form: each stores its part, loads what it needs."""
        stored = self.bytes_of(value) / (1 if before == WHOLE else CORES)
        needed = self.bytes_of(value) / (1 if after == WHOLE else CORES)
        return _TRANSFERS * self._transfer_ns + (stored + needed) / self._bytes_per_ns

    def combine_ns(self, value: int, after: int) -> float:
        """The same for partial results, of which each core loads both parts and adds them up."""
        moved = self.bytes_of(value) * (1 + CORES / (1 if after == WHOLE else CORES))
        return _TRANSFERS * self._transfer_ns + moved / self._bytes_per_ns

    def store_ns(self, value: int, axis: int) -> float:
        """Time to store what one core has of a result."""
        return self.bytes_of(value) / (1 if axis == WHOLE else CORES) / self._bytes_per_ns

    def bytes_of(self, value: int) -> int:
        """Bytes of a value in HBM."""
        type_ = self.module.values[value].type
        return type_.element_count * memory_dtype(type_.dtype).byte_count

    def _compute_ns(self, operation: Operation) -> float:
        values = self.module.values
        if not operation.results or operation.opcode in _FREE:
            return 0.0
        result = values[operation.results[0]].type
        if operation.opcode in ("dot_general", "convolution"):
            flops = 2.0 * result.element_count * self._depth(operation)
            return flops / self.core.peak_flops(values[operation.operands[0]].type.dtype) * 1e9
        elements = max(
            values[value].type.element_count for value in (*operation.operands, *operation.results)
        )
        return (1 if operation.opcode in ELEMENTWISE else 2) * elements / self._elements_per_ns

    def _depth(self, operation: Operation) -> float:
        """Products that are summed for one element of the result."""
        shape = self.module.shape_of(operation.operands[0])
        if operation.opcode == "dot_general":
            numbers = operation.attributes.get("dot_dimension_numbers", {})
            return float(math.prod(shape[axis] for axis in numbers.get("lhs_contracting_dimensions", ())))
        kernel = self.module.values[operation.operands[1]].type
        numbers = operation.attributes.get("dimension_numbers")
        features = kernel.shape[numbers["kernel"].index("o")] if isinstance(numbers, dict) else 1
        return kernel.element_count / max(int(features), 1)


def _given(module: Module) -> set[int]:
    """Values that are there from the start: parameters, and what is read through a view of one."""
    given = set(module.parameters)
    for operation in module.operations:
        if operation.opcode in LAZY_OPCODES and operation.operands and given.issuperset(operation.operands):
            given.update(operation.results)
    return given
