"""Weights that are part of the artifact: the compiler writes them as the product that reads them wants them.

Such a weight needs not be turned, and the blocks that a product loads lie together. A weight that several
operations read, or that whoever runs the artifact hands over, lies as the model has it.
"""

from __future__ import annotations

from dataclasses import replace

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.operands import Operand
from neuron_tools.records.program import TensorKind


def as_stored(context: Context, operand: Operand, depth: int, free: int) -> Operand:
    """The operand of a product of no batches, laid out beforehand where it is such a weight.

    Args:
        context: Of the program.
        operand: As it lies in the model.
        depth: Elements that are summed up.
        free: Elements of the other dimensions.
    """
    if not is_stored_for_reader(context, operand.root) or operand.is_repeated or operand.is_vector:
        return operand
    return replace(operand, turned=False, run=depth * free, is_tiled=True)


def is_stored_for_reader(context: Context, root: int) -> bool:
    """Whether a value is a weight inside the artifact that one operation reads."""
    if root < 0 or not context.options.inline_weights or not context.knows(root):
        return False
    location = context.locations.get(root)
    kind = location.kind if location is not None else context.location(root).kind
    return kind is TensorKind.WEIGHT and context.plan.reader_counts[root] == 1
