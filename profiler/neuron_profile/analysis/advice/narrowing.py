"""What operators that run one by one gain by products in bf16, with the casts that go before them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.line_calls import calls_in_order, spans_of
from neuron_profile.analysis.whatif.casting import narrowing_ns
from neuron_profile.analysis.whatif.change import Change
from neuron_profile.analysis.whatif.executions import Executions
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

    What runs before a module's first product makes its parameters, and stays as it is. What the program
    before a product did not compute is cast: once for each layer, or at each step where autograd follows.
    Operands outside of modules are made in bf16.

    Args:
        change: Computes in bf16.
    """
    what_if, executions = context.what_if, context.executions
    assert what_if is not None
    assert executions is not None
    gain, products = what_if.gain(change), _products_of_modules(context)
    if not products:
        return gain
    before = np.arange(len(executions)) < products[0]
    recorded = executions.end_ns - executions.start_ns
    changed = np.where(before, recorded, what_if.durations_ns(change))
    casts = list(_casts_ns(context, products))
    return replace(
        gain,
        device_after_ns=int(changed.sum()) + sum(device_ns for device_ns, _ in casts),
        total_after_ns=what_if.total_ns(changed) + sum(max(each) for each in casts),
    )


def _products_of_modules(context: Context) -> list[int]:
    """Positions of the executions, in order, of operators that multiply in fp32 for a module."""
    executions = context.executions
    assert executions is not None
    uses = [
        use for use in context.programs if use.key in executions.eager and fp32_products(use.program).any()
    ]
    found = sorted(each for use in uses for each in executions.of_program(use.key).tolist())
    modules = {row["layer"] for row in context.profile.query(_MODULES).to_pylist()}
    return [each for each in found if any(origin.layer in modules for origin in executions.origins(each))]


def fp32_products(program: Program) -> npt.NDArray[np.bool_]:
    """(rows,) whether each is part of a product of fp32 operands."""
    table = program.instructions
    is_fp32 = table["input_dtype"] == int(DType.F32)
    products: npt.NDArray[np.bool_] = np.isin(table["opcode"], _PRODUCTS) & is_fp32
    return products


def _casts_ns(context: Context, products: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Device time and host time of each cast."""
    executions, what_if = context.executions, context.what_if
    assert executions is not None
    assert what_if is not None
    (host,) = context.profile.query(_DISPATCH_NS).to_pylist()
    calls = calls_in_order(context)
    own = [placed.call for placed in calls if placed.file]
    forward = what_if.launching_spans(spans_of(own)) >= 0
    is_trained = len(own) < len(calls)
    done: set[Hashable] = set()
    for execution, shapes in _from_outside(context, products):
        layer = executions.executable[execution], executions.origins(execution)
        if forward[execution] and (is_trained or layer not in done):
            done.add(layer)
            for shape in shapes * (CASTS_OF_A_STEP if is_trained else 1):
                device_ns = round(executions.core.launch_overhead_ns) + narrowing_ns(
                    executions.core, prod(shape)
                )
                yield device_ns, int(host["dispatch_ns"] or 0)


def _from_outside(context: Context, products: Sequence[int]) -> Iterator[tuple[int, list[Shape]]]:
    """Each product, with the operands that the program before it did not compute; of the first one, all."""
    executions = context.executions
    assert executions is not None
    for number, execution in enumerate(products):
        operands = _shapes(_program(executions, execution), TensorKind.INPUT, TensorKind.WEIGHT)
        if number:
            for shape in _shapes(_program(executions, execution - 1), TensorKind.OUTPUT):
                if shape in operands:
                    operands.remove(shape)
        yield execution, operands


def _program(executions: Executions, execution: int) -> Program:
    return executions.program((int(executions.process[execution]), int(executions.executable[execution])))


def _shapes(program: Program, *kinds: TensorKind) -> list[Shape]:
    found = (tensor for tensor in program.tensors if tensor.kind in kinds and tensor.dtype is DType.F32)
    return [tuple(tensor.shape) for tensor in found]
