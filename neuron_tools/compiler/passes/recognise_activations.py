"""Puts back together activation functions that lowering took apart.

torch-mlir writes GELU as some thirty multiplications and additions; the Scalar engine does it in one
ACTIVATE. Two ways of recognising: by name, where all operations of one framework operation form an
elementwise function of one tensor; by structure, where the polynomial of erf (and GELU, SiLU around it)
appears without its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from neuron_tools.compiler.graph import operands_of, producers, users
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import ELEMENTWISE
from neuron_tools.frozen import frozen

ACTIVATION_NAMES: Mapping[str, str] = {
    "gelu": "gelu",
    "gelu_": "gelu",
    "silu": "silu",
    "silu_": "silu",
    "erf": "erf",
    "erfc": "erfc",
    "mish": "mish",
    "mish_": "mish",
    "softplus": "softplus",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "hardswish": "hardswish",
    "hardsigmoid": "hardsigmoid",
    "elu": "elu",
    "selu": "selu",
    "celu": "celu",
    "leaky_relu": "leaky_relu",
    "logsigmoid": "logsigmoid",
    "log_sigmoid_forward": "logsigmoid",
    "relu": "relu",
    "relu6": "relu6",
    "sin": "sin",
    "cos": "cos",
    "asin": "asin",
    "acos": "acos",
    "atan": "arctan",
    "sinh": "sinh",
    "cosh": "cosh",
    "asinh": "asinh",
    "acosh": "acosh",
    "atanh": "atanh",
    "expm1": "expm1",
    "log1p": "log1p",
    "log2": "log2",
    "log10": "log10",
    "exp2": "exp2",
    "reciprocal": "reciprocal",
    "special_erfcx": "erfcx",
    "erfinv": "erf_inv",
    "lgamma": "lgamma",
    "digamma": "digamma",
}
"""ATen operator (no namespace, no overload) -> function of the activation table."""

GRADIENT_NAMES: Mapping[str, str] = {
    "gelu_backward": "gelu_grad",
    "silu_backward": "silu_grad",
    "sigmoid_backward": "sigmoid_grad",
    "mish_backward": "mish_grad",
    "softplus_backward": "softplus_grad",
    "hardswish_backward": "hardswish_grad",
    "elu_backward": "elu_grad",
    "leaky_relu_backward": "leaky_relu_grad",
    "hardsigmoid_backward": "hardsigmoid_grad",
    "log_sigmoid_backward": "logsigmoid_grad",
}
"""Backward operators of (gradient, value): gradient x derivative of the activation at value."""

ERF_MINIMUM_OPERATIONS = 12
"""An elementwise polynomial of one tensor with at least this many operations between two clamps is erf."""


@frozen
class Cluster:
    """Operations that together are a function of `inputs` (non-constant values) with one result."""

    operations: tuple[Operation, ...]
    inputs: tuple[int, ...]
    result: int


def recognise_activations(module: Module) -> Module:
    """Replace clusters that are activation functions by `activation` and `activation_gradient`."""
    module = _by_name(module)
    module = _erf_polynomials(module)
    return _around_erf(_around_logistic(module))


# By name


def _by_name(module: Module) -> Module:
    by_row: dict[int, list[Operation]] = {}
    for operation in module.operations:
        if len(operation.framework) == 1:
            by_row.setdefault(operation.framework[0], []).append(operation)
    replacements: list[tuple[Cluster, Operation]] = []
    for row, operations in by_row.items():
        name = base_name(module.framework[row].name) if row < len(module.framework) else ""
        function = ACTIVATION_NAMES.get(name) or GRADIENT_NAMES.get(name)
        cluster = _cluster(module, operations) if function and len(operations) > 1 else None
        if function is None or cluster is None:
            continue
        made = _replacement(module, cluster, function, is_gradient=name in GRADIENT_NAMES)
        if made is not None:
            replacements.append((cluster, made))
    return _replace(module, replacements)


def base_name(name: str) -> str:
    """`aten::gelu.out` or `aten.gelu.default` -> `gelu`."""
    name = name.split("::")[-1]
    parts = name.split(".")
    return parts[1] if parts[0] == "aten" and len(parts) > 1 else parts[0]


def _cluster(module: Module, operations: Iterable[Operation]) -> Cluster | None:
    """The operations as one function, if they are elementwise and only one result leaves them."""
    chosen = tuple(op for op in operations if op.opcode != "constant")
    made = {result for op in chosen for result in op.results}
    if not all(op.opcode in ELEMENTWISE or op.opcode in ("broadcast_in_dim", "reshape") for op in chosen):
        return None
    constants = {op.results[0] for op in module.operations if op.opcode == "constant"}
    inputs = dict.fromkeys(
        value for op in chosen for value in operands_of(op) if value not in made and value not in constants
    )
    used = users(module)
    inside = {id(op) for op in chosen}
    leaving = [
        value
        for value in made
        if value in module.results or any(id(user) not in inside for user in used.get(value, ()))
    ]
    if len(leaving) != 1:
        return None
    return Cluster(chosen, tuple(inputs), leaving[0])


def _replacement(module: Module, cluster: Cluster, function: str, *, is_gradient: bool) -> Operation | None:
    count = module.values[cluster.result].type.element_count
    if any(module.values[value].type.element_count != count for value in cluster.inputs):
        return None
    if len(cluster.inputs) != (2 if is_gradient else 1):
        return None
    inputs = cluster.inputs
    if is_gradient and _multiplies_last(cluster, inputs[1]):
        inputs = (inputs[1], inputs[0])
    return Operation(
        "activation_gradient" if is_gradient else "activation",
        inputs,
        (cluster.result,),
        {"function": function},
        cluster.operations[-1].framework,
    )


def _multiplies_last(cluster: Cluster, value: int) -> bool:
    """Whether a value enters the cluster once, as the gradient does."""
    first_uses = sum(op.operands.count(cluster.inputs[0]) for op in cluster.operations)
    return sum(op.operands.count(value) for op in cluster.operations) < first_uses


# By structure


def _erf_polynomials(module: Module) -> Module:
    """clamp(-1, p(x) / q(x), 1) of one clamped tensor -> erf(x)."""
    made_by, constants = producers(module), _constants(module)
    used = users(module)
    replacements = []
    for operation in module.operations:
        if operation.opcode != "clamp" or not _bounds(operation, constants, 1.0):
            continue
        cone = _cone(operation, made_by, constants)
        if cone is None or len(cone) < ERF_MINIMUM_OPERATIONS:
            continue
        source = next((op for op in cone if op.opcode == "clamp" and op is not operation), None)
        if source is None or not _closed(cone, operation, used, module):
            continue
        cluster = Cluster(tuple(cone), (source.operands[1],), operation.results[0])
        attributes = {"function": "erf"}
        replacements.append(
            (cluster, replace(operation, opcode="activation", operands=cluster.inputs, attributes=attributes))
        )
    return _replace(module, replacements)


def _constants(module: Module) -> dict[int, float]:
    return {
        op.results[0]: op.attributes["value"]
        for op in module.operations
        if op.opcode == "constant" and isinstance(op.attributes.get("value"), (int, float))
    }


def _bounds(operation: Operation, constants: Mapping[int, float], limit: float) -> bool:
    low, _, high = operation.operands
    return constants.get(low) == -limit and constants.get(high) == limit


def _cone(
    last: Operation, made_by: Mapping[int, Operation], constants: Mapping[int, float]
) -> list[Operation] | None:
    """What leads from the first clamp to the last one by +, x and / alone; None if anything else does."""
    found: dict[int, Operation] = {id(last): last}
    pending = [last.operands[1]]
    while pending:
        value = pending.pop()
        operation = made_by.get(value)
        if value in constants:
            continue
        if operation is None or operation.opcode not in ("add", "multiply", "divide", "clamp"):
            return None
        if id(operation) in found:
            continue
        found[id(operation)] = operation
        if operation.opcode != "clamp":
            pending.extend(operation.operands)
        if len(found) > 64:
            return None
    return list(found.values())


def _closed(
    cone: Iterable[Operation], last: Operation, used: Mapping[int, list[Operation]], module: Module
) -> bool:
    inside = {id(op) for op in cone}
    return not any(
        value in module.results or any(id(user) not in inside for user in used.get(value, ()))
        for op in cone
        if op is not last
        for value in op.results
    )


def _around_erf(module: Module) -> Module:
    """(erf(x / sqrt 2) + 1) x (x / 2) -> gelu(x); tanh form likewise."""
    made_by, constants, used = producers(module), _constants(module), users(module)
    replacements = []
    for operation in module.operations:
        if operation.opcode != "multiply":
            continue
        found = _gelu(operation, made_by, constants)
        if found is None:
            continue
        value, inner = found
        if not _closed([*inner, operation], operation, used, module):
            continue
        cluster = Cluster((*inner, operation), (value,), operation.results[0])
        made = replace(operation, opcode="activation", operands=(value,), attributes={"function": "gelu"})
        replacements.append((cluster, made))
    return _replace(module, replacements)


def _gelu(
    operation: Operation, made_by: Mapping[int, Operation], constants: Mapping[int, float]
) -> tuple[int, list[Operation]] | None:
    """(x, operations before the last) of a GELU that ends in `operation`."""
    for first, second in (operation.operands, operation.operands[::-1]):
        plus, half = made_by.get(first), made_by.get(second)
        if plus is None or half is None or plus.opcode != "add" or half.opcode != "multiply":
            continue
        curve = next((made_by.get(v) for v in plus.operands if constants.get(v) is None), None)
        value = next((v for v in half.operands if v not in constants), None)
        is_half = any(constants.get(v) == 0.5 for v in half.operands)
        is_plus_one = any(constants.get(v) == 1.0 for v in plus.operands)
        if curve is None or value is None or not is_half or not is_plus_one:
            continue
        scaled = made_by.get(curve.operands[0]) if _is_erf(curve) else None
        if scaled is not None and scaled.opcode == "multiply" and value in scaled.operands:
            return value, [scaled, curve, plus, half]
    return None


def _is_erf(operation: Operation) -> bool:
    return operation.opcode == "erf" or operation.attributes.get("function") == "erf"


def _around_logistic(module: Module) -> Module:
    """x * logistic(x) -> silu(x)."""
    made_by, used = producers(module), users(module)
    replacements = []
    for operation in module.operations:
        if operation.opcode != "multiply":
            continue
        for first, second in (operation.operands, operation.operands[::-1]):
            gate = made_by.get(first)
            if gate is not None and gate.opcode == "logistic" and gate.operands[0] == second:
                if _closed([gate, operation], operation, used, module):
                    cluster = Cluster((gate, operation), (second,), operation.results[0])
                    made = replace(
                        operation, opcode="activation", operands=(second,), attributes={"function": "silu"}
                    )
                    replacements.append((cluster, made))
                break
    return _replace(module, replacements)


def _replace(module: Module, replacements: Iterable[tuple[Cluster, Operation]]) -> Module:
    """Put each new operation where the last of its cluster was; the others go."""
    dropped: set[int] = set()
    placed: dict[int, Operation] = {}
    for cluster, operation in replacements:
        dropped.update(id(op) for op in cluster.operations)
        placed[cluster.result] = operation
    if not placed:
        return module
    kept = []
    for operation in module.operations:
        if id(operation) not in dropped:
            kept.append(operation)
        elif operation.results[0] in placed:
            kept.append(placed[operation.results[0]])
    return replace(module, operations=tuple(kept))
