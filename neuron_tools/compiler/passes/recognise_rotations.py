"""Recognises rows put together from their own pieces: the rotated halves of rotary embeddings.

concatenate(-x[.., half:], x[.., :half]) along the last axis reads and writes the same row, so it is one
access pattern on chip, not a copy in memory: `rotate_columns`.
"""

from __future__ import annotations

from dataclasses import replace

from neuron_tools.compiler.graph import producers
from neuron_tools.compiler.hlo import Module, Operation


def recognise_rotations(module: Module) -> Module:
    """Replace such concatenations; the slices and signs that they no longer need are dead code."""
    made_by = producers(module)
    operations = tuple(
        _rotation(operation, module, made_by) or operation if operation.opcode == "concatenate" else operation
        for operation in module.operations
    )
    return replace(module, operations=operations)


def _rotation(operation: Operation, module: Module, made_by: dict[int, Operation]) -> Operation | None:
    shape = module.shape_of(operation.results[0])
    if int(operation.attributes.get("dimension", 0)) != len(shape) - 1:
        return None
    sources: set[int] = set()
    framework = dict.fromkeys(operation.framework)
    signs = False
    for value in operation.operands:
        piece = made_by.get(value)
        if piece is not None and piece.opcode == "negate":
            signs = True
            framework.update(dict.fromkeys(piece.framework))
            piece = made_by.get(piece.operands[0])
        if piece is None or not _is_piece_of_rows(piece, module):
            return None
        framework.update(dict.fromkeys(piece.framework))
        sources.add(piece.operands[0])
    if len(sources) != 1:
        return None
    source = sources.pop()
    if module.values[source].type != module.values[operation.results[0]].type:
        return None
    attributes = {"columns": shape[-1], "signs": signs}
    return Operation("rotate_columns", (source,), operation.results, attributes, tuple(framework))


def _is_piece_of_rows(operation: Operation, module: Module) -> bool:
    """Whether an operation takes some columns of every row."""
    if operation.opcode != "slice":
        return False
    shape = module.shape_of(operation.operands[0])
    starts, limits, strides = (
        operation.attributes[name] for name in ("start_indices", "limit_indices", "strides")
    )
    whole = all(
        start == 0 and limit == extent for start, limit, extent in zip(starts[:-1], limits[:-1], shape[:-1])
    )
    return whole and all(stride == 1 for stride in strides)
