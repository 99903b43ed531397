"""What operators that run one by one gain by products in bf16, with the casts that go before them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Set
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.line_calls import calls_in_order, spans_of
from neuron_profile.analysis.whatif.casting import narrowing_ns
from neuron_profile.analysis.whatif.change import Change
from neuron_profile.analysis.whatif.executions import ProgramKey
from neuron_profile.analysis.whatif.kernel_lines import kernel_lines
from neuron_profile.analysis.whatif.run import Gain
from neuron_tools.records.program import DType, Opcode, Program, TensorKind

Shape = tuple[int, ...]
_PRODUCTS = (int(Opcode.MATMUL), int(Opcode.LDWEIGHTS))
_DISPATCH_NS = (
    "SELECT CAST(median(duration_ns) AS BIGINT) AS dispatch_ns FROM HostSpan WHERE kind = 'dispatch'"
)
_MODULES = "SELECT DISTINCT layer FROM HostSpan WHERE kind = 'module'"
CASTS_OF_A_STEP = 2
"""Of a weight that is trained: to bf16 in the forward pass, and its gradient back to fp32."""


def narrowed_gain(context: Context, change: Change) -> Gain:
    """What the program gains by products in bf16, casts of what modules multiply included.

    What runs before the first product makes parameters and inputs, and stays as it is. What the program
    before a product did not compute is cast once for each layer. Where autograd follows, parameters stay in
    fp32 and are cast at each step, and what is no part of a module stays as it is: the loss, the optimizer.
    Operands outside of modules are made in bf16.

    Args:
        change: Computes in bf16.
    """
    what_if = context.what_if
    assert what_if is not None
    gain, narrowing = what_if.gain(change), _Narrowing(context)
    recorded = what_if.executions.end_ns - what_if.executions.start_ns
    changed = np.where(narrowing.stays, recorded, what_if.durations_ns(change))
    casts = list(narrowing.casts_ns())
    return replace(
        gain,
        device_after_ns=int(changed.sum()) + sum(device_ns for device_ns, _ in casts),
        total_after_ns=what_if.total_ns(changed) + sum(max(each) for each in casts),
    )


def fp32_products(program: Program) -> npt.NDArray[np.bool_]:
    """(rows,) whether each is part of a product of fp32 operands.

    Sums that the compiler takes over partitions, by a product with ones, are none: they are kept in fp32
    whatever their operands are.
    """
    table = program.instructions
    is_fp32 = table["input_dtype"] == int(DType.F32)
    products: npt.NDArray[np.bool_] = np.isin(table["opcode"], _PRODUCTS) & is_fp32
    return products & ~_sums(program)


def _sums(program: Program) -> npt.NDArray[np.bool_]:
    """(rows,) whether each belongs to an operation of the compiler's that multiplies no matrices."""
    if kernel_lines(program) is not None or not program.hlo:
        return np.zeros(len(program.instructions), bool)
    multiplies = np.array([each.model_flops > 0 or bool(each.kernel) for each in program.hlo])
    row = program.instructions["hlo"]
    sums: npt.NDArray[np.bool_] = (row >= 0) & ~multiplies[np.maximum(row, 0)]
    return sums


class _Narrowing:
    """Modules whose operators run one by one, computing in bf16.

    Attributes:
        products: Positions of the executions, in order, that multiply in fp32 for a module.
        stays: (executions,) whether each runs as it ran.
    """

    def __init__(self, context: Context) -> None:
        assert context.what_if is not None
        self._context, self._executions = context, context.what_if.executions
        calls = calls_in_order(context)
        own = [placed.call for placed in calls if placed.file]
        self._is_trained = len(own) < len(calls)
        self._forward = context.what_if.launching_spans(spans_of(own)) >= 0
        layers = {row["layer"] for row in context.profile.query(_MODULES).to_pylist()}
        in_module = np.array([self._is_of(layers, each) for each in range(len(self._executions))], bool)
        self.products = [
            each for each in np.flatnonzero(in_module).tolist() if fp32_products(self._program(each)).any()
        ]
        first = self.products[0] if self.products else self._first_product()
        self.stays = np.arange(len(in_module)) < first
        self._in_module = in_module
        if self._is_trained and self.products:
            forward = np.flatnonzero(in_module & self._forward).tolist()
            sums = [each for each in forward if not self._gives_bf16(each)]
            self.stays |= ~in_module
            self.stays[sums] = True

    def _first_product(self) -> int:
        """The first execution of any program that multiplies in fp32."""
        executions = self._executions
        multiplying = (key for key in executions.keys if fp32_products(executions.program(key)).any())
        return min((int(executions.of_program(key).min()) for key in multiplying), default=0)

    def casts_ns(self) -> Iterator[tuple[int, int]]:
        """Device time and host time of each cast."""
        executions = self._executions
        (host,) = self._context.profile.query(_DISPATCH_NS).to_pylist()
        launch_ns, done = round(executions.core.launch_overhead_ns), set[Hashable]()
        for execution in self.products:
            layer = executions.executable[execution], executions.origins(execution)
            if self._forward[execution] and (self._is_trained or layer not in done):
                for shape in self._from_outside(execution) * (CASTS_OF_A_STEP if self._is_trained else 1):
                    yield (
                        launch_ns + narrowing_ns(executions.core, prod(shape)),
                        int(host["dispatch_ns"] or 0),
                    )
                done.add(layer)

    def _is_of(self, layers: Set[str], execution: int) -> bool:
        """Whether an execution is of an operator that a module ran."""
        if self._key(execution) not in self._executions.eager:
            return False
        return any(origin.layer in layers for origin in self._executions.origins(execution))

    def _from_outside(self, execution: int) -> list[Shape]:
        """The operands of a product that are in fp32; the first one's are all."""
        operands = _shapes(self._program(execution), TensorKind.INPUT, TensorKind.WEIGHT)
        if execution != self.products[0] and self._gives_bf16(execution - 1):
            for shape in _shapes(self._program(execution - 1), TensorKind.OUTPUT):
                if shape in operands:
                    operands.remove(shape)
        return operands

    def _gives_bf16(self, execution: int) -> bool:
        """Whether an execution computes in bf16; where parameters stay in fp32, a sum with one is in fp32."""
        if not self._is_trained:
            return True
        program = self._program(execution)
        alone = len(_shapes(program, TensorKind.INPUT, TensorKind.WEIGHT)) == 1
        return bool(self._in_module[execution]) and (alone or bool(fp32_products(program).any()))

    def _key(self, execution: int) -> ProgramKey:
        return int(self._executions.process[execution]), int(self._executions.executable[execution])

    def _program(self, execution: int) -> Program:
        return self._executions.program(self._key(execution))


def _shapes(program: Program, *kinds: TensorKind) -> list[Shape]:
    found = (tensor for tensor in program.tensors if tensor.kind in kinds and tensor.dtype is DType.F32)
    return [tuple(tensor.shape) for tensor in found]
