"""Computes modules with NumPy: a whole one, or what two cores run side by side with their exchanges."""

from __future__ import annotations

import numpy as np

from neuron_tools.compiler.opcodes import EXCHANGE
from neuron_tools.compiler.split.strategy import CORES, WHOLE

UNARY = {
    "exponential": np.exp, "tanh": np.tanh, "negate": np.negative, "abs": np.abs, "sqrt": np.sqrt,
    "floor": np.floor, "logistic": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "maximum": np.maximum, "minimum": np.minimum,
}  # fmt: skip
REDUCERS = {"add": np.add.reduce, "maximum": np.maximum.reduce}


def run(module, arguments):
    """The results of a whole module."""
    stepper = steps(module, arguments)
    try:
        next(stepper)
    except StopIteration as end:
        return end.value
    raise AssertionError("a whole module exchanges nothing")


def run_cores(parts, arguments):
    """The local results of both cores."""
    parts = parts if len(parts) == CORES else parts * CORES
    steppers = [steps(part.module, list(given(part, arguments, core))) for core, part in enumerate(parts)]
    told = [None] * CORES
    while True:
        asked, ended = [], []
        for stepper, answer in zip(steppers, told):
            try:
                asked.append(stepper.send(answer))
            except StopIteration as end:
                ended.append(end.value)
        if ended:
            assert not asked, "one core exchanges what the other does not"
            return ended
        told = exchanged(asked)


def given(part, arguments, core):
    """A core's parameters."""
    for number, value in zip(part.parameters, part.module.parameters):
        shape = part.module.values[value].type.shape
        yield half(arguments[number], axis_of(arguments[number].shape, shape), core)


def axis_of(whole, part):
    """The axis along which a shape is half of another."""
    return next((axis for axis, (a, b) in enumerate(zip(whole, part)) if a != b), WHOLE)


def half(array, axis, core):
    """One core's half."""
    return array if axis == WHOLE else np.split(array, CORES, axis)[core]


def joined(halves, axis):
    """What both have."""
    return halves[0] if axis == WHOLE else np.concatenate(halves, axis)


def exchanged(asked):
    """What each core gets."""
    (first, _), *_ = asked
    held = [value for _, value in asked]
    if first["is_partial"]:
        return [[half(value, first["after"], core) for value in held] for core in range(CORES)]
    whole = joined(held, first["before"])
    return [[half(whole, first["after"], core)] for core in range(CORES)]


def steps(module, arguments):
    """Runs a module; yields (attributes, own part) of each exchange and is sent what it gives."""
    values = dict(zip(module.parameters, arguments))
    for operation in module.operations:
        operands = [values[value] for value in operation.operands]
        if operation.opcode == EXCHANGE:
            results = yield operation.attributes, operands[0]
        else:
            results = [computed(module, operation, operands)]
        for value, result in zip(operation.results, results):
            assert result.shape == module.values[value].type.shape, operation
            values[value] = result
    return [values[value] for value in module.results]


def computed(module, operation, operands):
    """One operation's result."""
    attributes, shape = operation.attributes, module.values[operation.results[0]].type.shape
    opcode = operation.opcode
    if opcode in UNARY:
        return UNARY[opcode](*operands)
    if opcode in BINARY:
        return BINARY[opcode](*operands)
    if opcode == "constant":
        return np.broadcast_to(np.asarray(attributes["value"], np.float64).reshape(-1)[:1].reshape(
            (1,) * len(shape)), shape)  # fmt: skip
    if opcode == "iota":
        axis = attributes["iota_dimension"]
        counted = np.arange(shape[axis], dtype=np.float64)
        return np.broadcast_to(counted.reshape([-1 if a == axis else 1 for a in range(len(shape))]), shape)
    if opcode == "broadcast_in_dim":
        placed = [1] * len(shape)
        for source, axis in enumerate(attributes["broadcast_dimensions"]):
            placed[axis] = operands[0].shape[source]
        return np.broadcast_to(operands[0].reshape(placed), shape)
    if opcode == "reshape":
        return operands[0].reshape(shape)
    if opcode == "transpose":
        return operands[0].transpose(attributes["permutation"])
    if opcode == "slice":
        names = ("start_indices", "limit_indices", "strides")
        return operands[0][tuple(slice(*bounds) for bounds in zip(*(attributes[name] for name in names)))]
    if opcode == "concatenate":
        return np.concatenate(operands, attributes["dimension"])
    if opcode == "reduce":
        kind = operation.regions[0].operations[0].opcode
        return BINARY[kind](REDUCERS[kind](operands[0], axis=tuple(attributes["dimensions"])), operands[1])
    if opcode == "select":
        return np.where(*operands)
    if opcode == "compare":
        return {"LT": np.less, "GE": np.greater_equal}[attributes["comparison_direction"]](*operands)
    if opcode == "convert":
        return operands[0]
    if opcode == "dot_general":
        return product(attributes["dot_dimension_numbers"], *operands)
    raise AssertionError(opcode)


def product(numbers, left, right):
    """A dot_general."""
    batch = [numbers.get(f"{side}_batching_dimensions", ()) for side in ("lhs", "rhs")]
    summed = [numbers.get(f"{side}_contracting_dimensions", ()) for side in ("lhs", "rhs")]
    letters = iter("abcdefghijklmnop")
    names = [[""] * left.ndim, [""] * right.ndim]
    for pairs in (zip(*batch), zip(*summed)):
        for mine, theirs in pairs:
            names[0][mine] = names[1][theirs] = next(letters)
    free = [[], []]
    for side in (0, 1):
        for axis, name in enumerate(names[side]):
            if not name:
                names[side][axis] = next(letters)
                free[side].append(names[side][axis])
    result = [names[0][axis] for axis in batch[0]] + free[0] + free[1]
    return np.einsum(f"{''.join(names[0])},{''.join(names[1])}->{''.join(result)}", left, right)
