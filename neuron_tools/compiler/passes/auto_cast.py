"""Casts float32 work to a narrower type, as `--auto-cast` asks: matrix products only, or everything."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from neuron_tools.compiler.graph import Rewriter, producers, users
from neuron_tools.compiler.hlo import Module, Operation, TensorType, Value
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.compiler.passes.dead_code import eliminate_dead_code

PRODUCTS = frozenset({"dot_general", "dot", "convolution"})
VIEWS = frozenset({"transpose", "reshape", "broadcast_in_dim", "slice", "reverse"})
COPIES = frozenset({"pad", "concatenate"})
"""They move values too, but one that is read wide elsewhere would be made twice."""
WIDE = "f32"


def auto_cast(module: Module, options: CompilerOptions) -> Module:
    """Narrow what the options say; parameters and results keep their types, inlined weights do not."""
    if options.auto_cast == "none":
        return module
    narrow, everything = options.auto_cast_type, options.auto_cast == "all"
    if options.inline_weights:
        module = _retype(module, _weights(module) if everything else _weights_of_products(module), narrow)
    return _cast_everything(module, narrow) if everything else _cast_products(module, narrow)


def narrow_at_borders(module: Module, borders: Collection[int], options: CompilerOptions) -> Module:
    """The module, to be cast, with parameters and results that other cores make or read in the narrow type.

    Args:
        borders: Those values.
        options: Where they cast less than everything, what cores hand on stays as it is.
    """
    if options.auto_cast != "all":
        return module
    return _retype(module, set(borders) - _as_bits(module.operations), options.auto_cast_type)


def _retype(module: Module, chosen: set[int], narrow: str) -> Module:
    values = tuple(_retyped(value, narrow) if value.id in chosen else value for value in module.values)
    return replace(module, values=values)


def _weights(module: Module) -> set[int]:
    return {value for value, kind in zip(module.parameters, module.parameter_kinds) if kind == "weight"}


def _weights_of_products(module: Module) -> set[int]:
    """Weights that matrix products alone use, perhaps turned, and what stands between."""
    made, used, weights = producers(module), users(module), _weights(module)
    found: set[int] = set()
    for operation in module.operations:
        for operand in operation.operands if operation.opcode in PRODUCTS else ():
            chain = [operand]
            while chain[-1] in made and made[chain[-1]].opcode in VIEWS:
                chain.append(made[chain[-1]].operands[0])
            if chain[-1] in weights and all(len(used[value]) == 1 for value in chain):
                found.update(chain)
    return found


def _cast_products(module: Module, narrow: str) -> Module:
    """Operands of matrix products are converted, once each; sums stay in float32, as PSUM has them.

    What is converted is the value that was computed, in front of the transposes and reshapes on its way to
    the product: engines write any type at no cost, so the cast is part of what made the value.
    """
    rewriter, moved = Rewriter(module), _moved_to_products(module)
    converted: dict[int, int] = {}
    for operation in module.operations:
        if operation.opcode in PRODUCTS:
            operands = tuple(
                _narrowed(rewriter, value, narrow, operation, converted, moved)
                for value in operation.operands
            )
            operation = replace(operation, operands=operands)
        rewriter.operations.append(operation)
    return _write_narrow(eliminate_dead_code(rewriter.finish()))


def _moved_to_products(module: Module) -> dict[int, Operation]:
    """Movements by their result: views, and copies that nobody but products reads."""
    used = users(module)
    return {
        operation.results[0]: operation
        for operation in module.operations
        if operation.opcode in VIEWS
        or (
            operation.opcode in COPIES
            and operation.results[0] not in module.results
            and all(user.opcode in PRODUCTS for user in used.get(operation.results[0], ()))
        )
    }


def _write_narrow(module: Module) -> Module:
    """A product of which only the narrow form is read is narrow where it leaves PSUM."""
    made, used = producers(module), users(module)
    rewriter = Rewriter(module)
    narrow: dict[int, Operation] = {}
    for operation in module.operations:
        product = made.get(operation.operands[0]) if operation.opcode == "convert" else None
        if product is None or product.opcode not in PRODUCTS or product.results[0] in module.results:
            continue
        if len(used[product.results[0]]) == 1:
            narrow[id(product)] = operation
    dropped = {id(operation) for operation in narrow.values()}
    for operation in module.operations:
        if id(operation) in narrow:
            operation = replace(operation, results=narrow[id(operation)].results)
        if id(operation) not in dropped:
            rewriter.operations.append(operation)
    return rewriter.finish()


def _narrowed(
    rewriter: Rewriter, value: int, narrow: str, user: Operation, converted: dict[int, int],
    moved: Mapping[int, Operation],
) -> int:  # fmt: skip
    """The value in the narrow type; what moves a value moves the narrow one."""
    type_ = rewriter.type_of(value)
    if type_.dtype != WIDE:
        return value
    if value not in converted:
        movement, cast = moved.get(value), TensorType(type_.shape, narrow)
        if movement is not None:
            sources = tuple(
                _narrowed(rewriter, source, narrow, user, converted, moved) for source in movement.operands
            )
            converted[value] = rewriter.add(movement.opcode, sources, cast, movement, **movement.attributes)
        else:
            converted[value] = rewriter.add("convert", (value,), cast, user)
    return converted[value]


def _cast_everything(module: Module, narrow: str) -> Module:
    """Every float32 value between parameters and results is of the narrow type."""
    if not module.operations:
        return module
    kept = {*module.parameters, *_as_bits(module.operations)}
    retyped = tuple(value if value.id in kept else _retyped(value, narrow) for value in module.values)
    rewriter = Rewriter(replace(module, values=retyped))
    first = module.operations[0]
    for parameter in module.parameters:
        rewriter.alias(parameter, _narrowed(rewriter, parameter, narrow, first, {}, {}))
    for operation in module.operations:
        rewriter.operations.append(rewriter.renamed(operation))
    finished = rewriter.finish()
    return _widen_results(module, finished)


def _widen_results(module: Module, finished: Module) -> Module:
    rewriter = Rewriter(finished)
    rewriter.operations.extend(finished.operations)
    results = []
    for old, new in zip(module.results, finished.results):
        wanted = module.values[old].type
        if finished.values[new].type == wanted:
            results.append(new)
        else:
            results.append(rewriter.add("convert", (new,), wanted, finished.operations[-1]))
    return replace(rewriter.finish(), results=tuple(results))


def _retyped(value: Value, narrow: str) -> Value:
    if value.type.dtype != WIDE:
        return value
    return replace(value, type=TensorType(value.type.shape, narrow))


def _as_bits(operations: tuple[Operation, ...]) -> set[int]:
    """Values whose bits are looked at: another type would be another value."""
    found: set[int] = set()
    for operation in operations:
        if operation.opcode == "bitcast_convert":
            found.update((*operation.operands, *operation.results))
        for region in operation.regions:
            found |= _as_bits(region.operations)
    return found
