"""Whether an operation fits into a group: its shapes there, and whether its operands can be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from neuron_tools.compiler.graph import operands_of
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import ROTATION
from neuron_tools.compiler.passes.groups import (
    Domain,
    Group,
    Shape,
    broadcast_domain,
    reduction_domain,
    row_domain,
)
from neuron_tools.compiler.views import Block, View, Views, merged_blocks

MAX_GROUP_OPERATIONS = 64
"""Longer chains are cut: their tiles would not fit the SBUF together anyway."""
ROW_EPILOGUE_COLUMNS = 2048
"""Columns of a dot (attention scores) whose rows fit half of PSUM, so that a softmax can follow at once;
half as many where operands have to be turned through PSUM."""
ROW_EPILOGUE_ROWS = 32
"""Rows of such a dot: with fewer, a loop over all rows of the batch uses the partitions better."""
ROW_EPILOGUE_DEPTH = 1024
"""Contraction of such a dot: its operand blocks leave room for whole rows in SBUF."""


class Joining:
    """Lets operations join groups; `_add_to` books what joined."""

    _module: Module
    _views: Views
    _fuse_operations: bool
    _groups: list[Group]
    _group_of: dict[int, int]

    def _add_to(
        self, group: Group, index: int, operation: Operation, shape: Shape, views: Iterable[View]
    ) -> None:
        raise NotImplementedError

    def _try_join(self, operation: Operation, views: list[View], index: int) -> bool:
        if not self._fuse_operations:
            return False
        group = self._groups[index]
        if group.kind not in ("loop", "dot", "convolution") or len(group.operations) >= MAX_GROUP_OPERATIONS:
            return False
        if self._would_cycle(views, index):
            return False
        placed = self._fit(operation, views, group)
        if placed is None:
            return False
        domain, shape = placed
        group.domain = domain
        self._add_to(group, index, operation, shape, views)
        return True

    def _would_cycle(self, views: Iterable[View], index: int) -> bool:
        bit = 1 << index
        return any(
            self._group_of[view.root] != index and self._groups[self._group_of[view.root]].ancestors & bit
            for view in views
            if view.root in self._group_of
        )

    def _fit(
        self, operation: Operation, views: list[View], group: Group
    ) -> tuple[Domain | None, Shape] | None:
        """(domain, shape of the results) with which the operation fits into the group, or None."""
        is_reduction = operation.opcode in ("reduce", "moments")
        if is_reduction and not self._takes_reductions(operation, group):
            return None
        shape = self._result_shape(operation, views, group)
        if shape is None:
            return None
        domain = group.domain
        if operation.opcode == ROTATION:
            domain = domain or row_domain(operation, self._module)
            if domain.outer != 1 or domain.columns % int(operation.attributes["columns"]):
                return None
        if is_reduction:
            form = reduction_domain(operation, self._module)
            if form is None or (form[0] is not None and domain is not None and form[0] != domain):
                return None
            domain, shape = form[0] or domain, form[1]
        read_as = Shape.FULL if is_reduction else shape
        for view in views:
            allowed, domain = self._operand_fits(view, group, domain, read_as)
            if not allowed:
                return None
        return domain, shape

    def _takes_reductions(self, operation: Operation, group: Group) -> bool:
        """Loops do; so does a dot whose whole rows are in PSUM at once, for reductions along its columns."""
        if group.kind == "loop":
            return True
        if group.kind != "dot" or group.domain is None or len(operation.results) != 1:
            return False
        form = reduction_domain(operation, self._module)
        dot = group.operations[0]
        shape = self._module.shape_of(dot.results[0])
        if len(shape) < 2 or shape[-2] < ROW_EPILOGUE_ROWS:
            return False
        count = self._count(dot.operands[0])
        depth = count // max(1, group.domain.rows)
        wide = self._module.values[dot.operands[0]].type.dtype in ("f32", "f64")
        limit = ROW_EPILOGUE_COLUMNS // 2 if wide else ROW_EPILOGUE_COLUMNS
        return (
            form is not None
            and form[1] is Shape.ROW
            and operation.opcode == "reduce"
            and group.domain.columns <= limit
            and depth <= ROW_EPILOGUE_DEPTH
        )

    def _result_shape(self, operation: Operation, views: list[View], group: Group) -> Shape | None:
        inside = [group.shapes[view.root] for view in views if view.root in group.shapes]
        if Shape.LATE in inside:
            return None
        space = operation.operands[0] if operation.opcode in ("reduce", "moments") else operation.results[0]
        count = self._count(space)
        rows = group.domain.rows if group.domain else 0
        if count == group.element_count and (Shape.FULL in inside or count != rows):
            return Shape.FULL
        only_rows = inside and all(shape is Shape.ROW for shape in inside)
        if only_rows and count == rows and operation.opcode not in ("reduce", "moments"):
            return Shape.ROW
        return None

    def _operand_fits(
        self, view: View, group: Group, domain: Domain | None, shape: Shape
    ) -> tuple[bool, Domain | None]:
        inside = group.shapes.get(view.root)
        if view.is_scalar and inside is None:
            return True, domain
        if inside is None:
            if shape is Shape.FULL and domain is None:
                return True, broadcast_domain(view.blocks)
            return True, domain  # read with the access pattern that it has
        if inside is Shape.FULL:
            return view.is_plain and (shape is not Shape.ROW), domain
        if shape is Shape.ROW:
            return view.is_plain, domain
        return domain is not None and _is_row_of(view.blocks, domain), domain

    def _read(self, operation: Operation) -> tuple[int, ...]:
        """Operands that matter: a reduction's initial values do not."""
        if operation.opcode == "reduce":
            return operation.operands[: len(operation.operands) // 2]
        return tuple(operands_of(operation))

    def _read_view(self, operation: Operation, value: int) -> View:
        """The view whose root an operation really reads: dots turn operands themselves."""
        view = self._views.of(value)
        if operation.opcode in ("dot_general", "convolution"):
            return replace(view, root=self._views.layout(value).root)
        return view

    def _count(self, value: int) -> int:
        return self._module.values[value].type.element_count


def _is_row_of(blocks: tuple[Block, ...], domain: Domain) -> bool:
    """Whether a repeated operand has one element per row of the domain."""
    expected = merged_blocks([(domain.outer, False), (domain.rows, True), (domain.columns, False)])
    return blocks == expected
