"""Forms the groups that become one loop over tiles each: a fusion plan.

A loop group has one iteration space of rows x columns (times an outer repetition for channel-like
layouts). Elementwise operations join their producers' group, row reductions and what follows from them
too, reductions over rows may end a group. A dot or convolution starts a group that elementwise
operations may join as its epilogue. Everything else is a group of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce
from operator import or_

from neuron_tools.compiler.graph import operands_of, producers, users
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import ATTENTION_GRADIENT, ELEMENTWISE, ROTATION
from neuron_tools.compiler.passes.attention import AttentionBlock, find_attention
from neuron_tools.compiler.passes.groups import (
    Domain,
    FusionPlan,
    Group,
    Shape,
    broadcast_domain,
    convolution_domain,
    dot_columns,
    reduction_domain,
    row_domain,
)
from neuron_tools.compiler.passes.in_place import find_in_place
from neuron_tools.compiler.passes.joining import MAX_GROUP_OPERATIONS, Joining
from neuron_tools.compiler.views import View, Views, is_lazy


def fuse(module: Module, *, fuse_operations: bool = True) -> FusionPlan:
    """Partition the module's operations into groups; lazy operations are read through, not run.

    With `fuse_operations` off every operation is a group of its own.
    """
    return _Fusion(module, fuse_operations).run()


_READ_THROUGH = frozenset({"dot_general", "convolution", ATTENTION_GRADIENT})
"""Operations that load their operands from where views say that they lie."""
_PRODUCTS = frozenset({"dot", "convolution"})
"""Groups that begin with a product, whose tiles elementwise operations change before they are stored."""
_ROWS_OF_HEADS = 3
"""Dimensions of numbers for each query: batch, head, token."""
_MOVED = frozenset({"reshape", "convert", "broadcast_in_dim", "iota", "constant"})


class _Fusion(Joining):
    def __init__(self, module: Module, fuse_operations: bool) -> None:
        self._module = module
        self._fuse_operations = fuse_operations
        self._made_by = producers(module)
        self._views = Views(module, self._made_by)
        self._users = users(module)
        self._groups: list[Group] = []
        self._group_of: dict[int, int] = {}
        self._readers: dict[int, list[int]] = {}
        self._position = {id(operation): index for index, operation in enumerate(module.operations)}

    def run(self) -> FusionPlan:
        """Place all operations, then add what results and special groups need materialised."""
        blocks = find_attention(self._module) if self._fuse_operations else ()
        last = {id(block.values): block for block in blocks}
        inside = {id(operation) for block in blocks for operation in block.replaced}
        hidden = self._masks_of(blocks)
        for operation in self._module.operations:
            if id(operation) in last:
                self._place_attention(last[id(operation)])
            elif id(operation) not in inside | hidden and not is_lazy(operation, self._module):
                self._place(operation)
        for value in self._module.results:
            self._materialise(value)
        in_place = find_in_place(self._module, self._groups, self._views)
        return FusionPlan(self._module, self._ordered(), self._views, self._made_by, in_place)

    def _root_read(self, operation: Operation, value: int) -> int:
        """What is in memory; numbers of a token's heads that lie side by side are read as they lie."""
        if operation.opcode == ATTENTION_GRADIENT and len(self._module.shape_of(value)) == _ROWS_OF_HEADS:
            return self._views.layout(value).root
        return self._views.of(value).root

    def _place(self, operation: Operation) -> None:
        if operation.opcode in ("dot_general", "convolution"):
            for value in operation.operands:
                self._ensure(self._views.layout(value).root)
        else:
            for value in self._read(operation):
                self._ensure(self._root_read(operation, value))
        views = [self._views.of(value) for value in self._read(operation)]
        if operation.opcode in ELEMENTWISE or operation.opcode in ("reduce", "moments"):
            made = {self._group_of[view.root] for view in views if view.root in self._group_of}
            siblings = self._siblings(operation, views)
            makers = sorted(made, key=lambda index: (self._has_rows(index, views), index), reverse=True)
            for index in (*makers, *sorted(siblings - made, reverse=True)):
                if self._try_join(operation, views, index):
                    self._merge_producers(made - {index}, index)
                    return
            self._start_loop(operation, views)
            return
        for value in operands_of(operation):
            if operation.opcode not in _READ_THROUGH and self._views.of(value).root >= 0:
                self._materialise(value)
        kind = {"dot_general": "dot", "convolution": "convolution"}.get(operation.opcode, operation.opcode)
        if kind == "concatenate" and self._fuse_operations and self._only_products_read(operation.results[0]):
            kind = "pieces"
        group = Group(kind, element_count=self._count(operation.results[0]) if operation.results else 0)
        if kind == "dot":
            columns = dot_columns(operation, self._module)
            group.domain = Domain(1, group.element_count // max(columns, 1), max(columns, 1))
        elif kind == "convolution":
            group.domain = convolution_domain(operation, self._module)
        self._add(group, operation, Shape.FULL)

    def _has_rows(self, index: int, views: Iterable[View]) -> bool:
        """Whether a group made one of the values as a result of each of its rows: later work on the rows
        may need what is made of these.
        """
        return any(self._groups[index].shapes.get(view.root) is Shape.ROW for view in views)

    def _masks_of(self, blocks: Iterable[AttentionBlock]) -> set[int]:
        """Operations that only made the masks of causal blocks: nothing reads them any more."""
        kept = {id(op) for block in blocks for op in (block.scores, *block.body, block.values)}
        replaced = {id(op) for block in blocks for op in block.replaced}
        read = set(self._module.results)
        for block in blocks:
            for operation in (block.scores, *block.body, block.values):
                read.update(operands_of(operation))
        unread: set[int] = set()
        for operation in reversed(self._module.operations):
            if id(operation) in replaced | kept:
                continue
            if blocks and read.isdisjoint(operation.results) and operation.opcode in (*ELEMENTWISE, *_MOVED):
                unread.add(id(operation))
            else:
                read.update(operands_of(operation))
        return unread

    def _place_attention(self, block: AttentionBlock) -> None:
        """A group of its own; only its rows' statistics and its result leave it."""
        operations = (block.scores, *(op for op in block.body if not is_lazy(op, self._module)), block.values)
        for operation in operations:
            for value in self._read(operation):
                self._ensure(self._read_view(operation, value).root)
        count = self._count(block.scores.results[0])
        columns = self._module.shape_of(block.scores.results[0])[-1]
        group = Group("attention", element_count=count, domain=Domain(1, count // columns, columns))
        group.attention = block
        self._groups.append(group)
        index = len(self._groups) - 1
        for operation in operations:
            views = [self._read_view(operation, value) for value in self._read(operation)]
            shape = Shape.FULL if self._count(operation.results[0]) == count else Shape.ROW
            self._add_to(group, index, operation, Shape.LATE if operation is block.values else shape, views)

    def _only_products_read(self, value: int) -> bool:
        """Whether all that read a value are products, which can load each piece from where it lies."""
        if value in self._module.results or not self._users.get(value):
            return False
        return all(
            user.opcode == "dot_general"
            or (is_lazy(user, self._module) and self._only_products_read(user.results[0]))
            for user in self._users[value]
        )

    def _start_loop(self, operation: Operation, views: list[View]) -> None:
        is_reduction = operation.opcode in ("reduce", "moments")
        space = operation.operands[0] if is_reduction else operation.results[0]
        group = Group("loop", element_count=self._count(space))
        shape = Shape.FULL
        if is_reduction:
            form = reduction_domain(operation, self._module)
            if form is None:
                group.kind, form = "reduce", (None, Shape.LATE)
            group.domain, shape = form
        if operation.opcode == ROTATION:
            group.domain = row_domain(operation, self._module)
        for view in views:
            if group.domain is None and view.root >= 0 and not view.is_scalar and group.kind == "loop":
                group.domain = broadcast_domain(view.blocks)
        self._add(group, operation, shape)

    def _siblings(self, operation: Operation, views: Iterable[View]) -> set[int]:
        """Groups that read the same memory, where the operation's users may be in the same group then."""
        siblings = {index for view in views for index in self._recent_readers(view)}
        return {index for index in siblings if not self._is_needed_between(index, operation)}

    def _is_needed_between(self, index: int, operation: Operation) -> bool:
        """Whether a user of the operation waits for others that need the group: it cannot be part of it, and
        what the operation makes would pass memory. So do an update of a parameter and its forward pass.
        """
        places = (self._position.get(id(each)) for each in self._groups[index].operations)
        group = reduce(or_, (1 << place for place in places if place is not None), 0)
        others = (
            value
            for result in operation.results
            for user in self._users.get(result, ())
            for value in operands_of(user)
            if value != result and self._group_of.get(self._views.of(value).root) != index
        )
        makers = (self._made_by[value] for value in others if value in self._made_by)
        return any(self._needed_by[self._position[id(maker)]] & group for maker in makers)

    @cached_property
    def _needed_by(self) -> list[int]:
        """For each operation the bit set of those that must come before it, and itself."""
        needed: list[int] = []
        for position, operation in enumerate(self._module.operations):
            makers = (self._made_by[value] for value in operands_of(operation) if value in self._made_by)
            bits = (needed[self._position[id(maker)]] for maker in makers)
            needed.append(reduce(or_, bits, 1 << position))
        return needed

    def _recent_readers(self, view: View) -> list[int]:
        """Groups that read the same memory: joining one saves a load."""
        return self._readers.get(view.root, [])[-2:] if view.root >= 0 and not view.is_scalar else []

    # Merging

    def _merge_producers(self, others: Iterable[int], index: int) -> None:
        """Join the group with others whose results it has just read, where nothing stands between."""
        for other in sorted(others, reverse=True):
            index = self._merged(other, index)

    def _merged(self, other: int, index: int) -> int:
        """The group that `index` is part of then: a loop takes in loops, a product the loop that reads it."""
        group, producer = self._groups[index], self._groups[other]
        if group.kind != "loop" or group.element_count != producer.element_count:
            return index
        if producer.kind not in ("loop", *_PRODUCTS) or not self._may_be_one(other, index):
            return index
        if producer.kind == "loop":
            self._absorb(other, index)
            return index
        if set(group.shapes.values()) != {Shape.FULL}:
            return index
        self._absorb(index, other)
        return other

    def _may_be_one(self, other: int, index: int) -> bool:
        """Whether a loop fits together with the producer of what its last operation reads."""
        group, producer = self._groups[index], self._groups[other]
        domain = group.domain or producer.domain
        return (
            len(group.operations) + len(producer.operations) <= MAX_GROUP_OPERATIONS
            and (producer.domain or domain) == domain
            and not self._depends(group.operations[:-1], producer)
            and not self._stands_between(other, index)
            and self._reads_fit(group.operations[-1], producer, domain)
        )

    def _depends(self, operations: Iterable[Operation], producer: Group) -> bool:
        return any(
            self._views.of(value).root in producer.shapes
            for operation in operations
            for value in self._read(operation)
        )

    def _stands_between(self, other: int, index: int) -> bool:
        """Whether a third group comes after one of the two and before the other."""
        first, second = 1 << other, 1 << index
        return any(
            position not in (other, index)
            and (
                (group.ancestors & first and self._groups[index].ancestors >> position & 1)
                or (group.ancestors & second and self._groups[other].ancestors >> position & 1)
            )
            for position, group in enumerate(self._groups)
        )

    def _reads_fit(self, operation: Operation, producer: Group, domain: Domain | None) -> bool:
        shape = Shape.FULL
        trial = Group("loop", [], domain, producer.element_count, producer.shapes)
        return all(
            self._operand_fits(view, trial, domain, shape)[0]
            for view in map(self._views.of, self._read(operation))
            if view.root in producer.shapes and producer.shapes[view.root] is not Shape.LATE
        ) and not any(
            producer.shapes.get(self._views.of(value).root) is Shape.LATE for value in self._read(operation)
        )

    def _absorb(self, other: int, index: int) -> None:
        group, producer = self._groups[index], self._groups[other]
        product = group.operations[:1] if group.kind in _PRODUCTS else []
        rest = [*producer.operations, *group.operations[len(product) :]]
        group.operations = [*product, *sorted(rest, key=self._order_of)]
        group.domain = group.domain or producer.domain
        group.shapes = {**producer.shapes, **group.shapes}
        self._group_of.update(dict.fromkeys(producer.shapes, index))
        for readers in self._readers.values():
            readers[:] = [index if reader == other else reader for reader in readers]
        bit, new = 1 << other, 1 << index
        group.ancestors = (group.ancestors | producer.ancestors) & ~(bit | new)
        for third in self._groups:
            if third.ancestors & (bit | new):
                third.ancestors = (third.ancestors & ~bit) | new | group.ancestors
        self._groups[other] = Group("absorbed")

    def _order_of(self, operation: Operation) -> int:
        return self._position.get(id(operation), 0)

    # Book-keeping

    def _add(self, group: Group, operation: Operation, shape: Shape) -> None:
        self._groups.append(group)
        views = [self._read_view(operation, value) for value in self._read(operation)]
        self._add_to(group, len(self._groups) - 1, operation, shape, views)

    def _add_to(
        self, group: Group, index: int, operation: Operation, shape: Shape, views: Iterable[View]
    ) -> None:
        group.operations.append(operation)
        new = 0
        for view in views:
            self._readers.setdefault(view.root, []).append(index)
            producer = self._group_of.get(view.root, index)
            if producer != index:
                new |= self._groups[producer].ancestors | (1 << producer)
        if new & ~group.ancestors:
            group.ancestors |= new
            bit = 1 << index
            for other in self._groups:
                if other.ancestors & bit:
                    other.ancestors |= group.ancestors
        for result in operation.results:
            group.shapes[result] = shape
            self._group_of[result] = index

    def _ensure(self, root: int) -> None:
        """Make a lazy value that cannot be read through, e.g. a transpose of the innermost dimension."""
        operation = self._made_by.get(root)
        if root in self._group_of or operation is None or not is_lazy(operation, self._module):
            return
        if operation.opcode != "constant":
            self._materialise(root, own=True)

    def _materialise(self, value: int, *, own: bool = False) -> None:
        """Give a value that is read through a chain memory of its own, where it must exist as such."""
        view = self._views.of(value)
        if value in self._group_of:
            return
        if view.is_same and not own and view.root != value:
            self._ensure(view.root)
            return
        operation = self._made_by.get(value)
        if operation is None or not is_lazy(operation, self._module):
            return
        # Rows that stay rows are read in another order by DMA; only what runs along another axis is turned.
        turns = operation.opcode == "transpose" and view.root == value
        for operand in operation.operands:
            if operation.opcode == "slice" or turns:
                self._materialise(operand)
            self._ensure(self._views.of(operand).root)
        if view.root != value:
            self._ensure(view.root)
        if operation.opcode == "convert":
            read = [self._views.of(operand) for operand in operation.operands]
            maker = self._group_of.get(read[0].root)
            if maker is not None and self._try_join(operation, read, maker):
                return
        kind = {"slice": "slice", "transpose": "transpose" if turns else "loop"}.get(operation.opcode, "loop")
        group = Group(kind, element_count=self._count(value))
        if kind == "loop" and view.root >= 0:
            group.domain = broadcast_domain(view.blocks)
        self._add(group, operation, Shape.FULL)

    def _ordered(self) -> tuple[Group, ...]:
        """Groups so that every group comes after its ancestors: those with few of them first, or in the
        order of the program, where what it computes again shall not be there before it is needed.
        """
        order = sorted(range(len(self._groups)), key=self._ancestor_count)
        if self._module.in_order:
            order = self._in_program_order(order)
        used_by = self._uses()
        for group in self._groups:
            group.outputs = tuple(value for value in group.shapes if self._is_output(value, group, used_by))
        return tuple(self._groups[index] for index in order if self._groups[index].operations)

    def _ancestor_count(self, index: int) -> int:
        return self._groups[index].ancestors.bit_count()

    def _in_program_order(self, valid: Sequence[int]) -> list[int]:
        """As they were begun, each with those of its ancestors that are still missing before it."""
        done, order = 0, list[int]()
        for index, group in enumerate(self._groups):
            missing = (group.ancestors | 1 << index) & ~done
            alone = missing == 1 << index
            order += [index] if alone else [each for each in valid if missing >> each & 1]
            done |= missing
        return order

    def _uses(self) -> dict[int, set[int]]:
        """Root value -> ids of the groups that read it."""
        table: dict[int, set[int]] = {}
        for group in self._groups:
            for operation in group.operations:
                for value in self._read(operation):
                    for read in (value, self._read_view(operation, value).root):
                        table.setdefault(read, set()).add(id(group))
        for value in self._module.results:
            in_memory = value if value in self._group_of else self._views.of(value).root
            table.setdefault(in_memory, set()).add(0)
        return table

    @staticmethod
    def _is_output(value: int, group: Group, used_by: Mapping[int, set[int]]) -> bool:
        return bool(used_by.get(value, set()) - {id(group)})
