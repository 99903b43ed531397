"""Instruction selection for loop groups: HLO operations to the fewest engine instructions per tile.

The result speaks of *keys* (values or parts of values held in tiles), not yet of memory: how many
instructions a tile costs is decided here, where its tiles lie in `loop.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from neuron_tools.compiler.codegen.micro import Key, Micro, Selection, mark_rows, reduction_kind
from neuron_tools.compiler.codegen.row_algebra import (
    AFFINE,
    TWO_SCALAR_OPERATIONS,
    compose_sums,
    row_steps,
    scale_and_shift,
)
from neuron_tools.compiler.codegen.selected_operands import SelectedOperands
from neuron_tools.compiler.codegen.tables import SQUARE
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.compiler.opcodes import (
    ACTIVATIONS,
    BINARY,
    DROPOUT,
    GPSIMD_BINARY,
    ROTATION,
    VECTOR_UNARY,
)
from neuron_tools.compiler.passes.groups import Domain, Group, Shape
from neuron_tools.compiler.views import Views
from neuron_tools.records.program import Engine, Flag, Opcode

VECTOR, SCALAR, GPSIMD = Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD


def select(
    group: Group, module: Module, views: Views, domain: Domain, *, row_scalars: bool = True,
    joins_scalar: bool = True, composes_scalars: bool = False,
) -> Selection:  # fmt: skip
    """Choose instructions for a group.

    Args:
        group: A loop group (or the epilogue of a dot: its first operation is then an external).
        domain: The iteration space used, rows x columns (outer repetitions folded in by the caller).
        row_scalars: A row's number is a scalar operand. Where a partition has several rows, each then takes
            an instruction of its own; without, one instruction spreads the numbers over the rows' elements.
        joins_scalar: (tensor op scalar) op tensor is one SCALAR_TENSOR_TENSOR; off where the two
            instructions that it stands for are quicker (`engines.joins_scalar`).
        composes_scalars: Scales and shifts by rows' numbers that follow one another become one scale and one
            shift, computed once per row; worth it for long rows (`engines.composes_scalars`).
    """
    return _Selector(
        group, module, views, domain, row_scalars, joins_scalar, composes_scalars and row_scalars
    ).run()  # fmt: skip


@dataclass(eq=False)
class _Selector(SelectedOperands):
    _scalar_rows: bool
    _joins_scalar: bool
    _composes_scalars: bool
    _uses: Counter[Key] = field(default_factory=Counter, init=False)
    _made: dict[Key, Micro] = field(default_factory=dict, init=False)

    def run(self) -> Selection:
        """Select all operations in order."""
        self._count_uses()
        for operation in self._group.operations:
            self._operation(operation)
        for value in self._group.outputs:
            if self._group.shapes[value] is not Shape.LATE:
                self._result.stored[value] = self._output_key(value)
        if self._composes_scalars:
            compose_sums(self._result, self._temporary)
        mark_rows(self._result)
        self._levels()
        return self._result

    def _count_uses(self) -> None:
        for operation in self._group.operations:
            for operand in _read(operation):
                self._uses[self._views.of(operand).root] += 1
        self._uses.update(self._group.outputs)

    def _output_key(self, value: int) -> Key:
        return self._alias.get(value, value)

    # Operations

    def _operation(self, operation: Operation) -> None:
        opcode = operation.opcode
        if opcode in ("dot_general", "convolution"):
            return
        shape = self._group.shapes[operation.results[0]]
        if opcode in ("reduce", "moments"):
            self._reduction(operation, shape)
        elif opcode == "convert" or opcode not in ACTIVATIONS | dict.fromkeys(
            VECTOR_UNARY | BINARY | {"select", "clamp", "activation", ROTATION, DROPOUT}, ""
        ):
            self._alias_or_copy(operation, shape)
        elif opcode == ROTATION:
            self._rotation(operation, shape)
        elif opcode == DROPOUT:
            key, _ = self._operand(operation.operands[0])
            self._emit(operation, shape, Opcode.DROPOUT, (VECTOR,), [key], operation.results[0])
        elif opcode in ACTIVATIONS or opcode == "activation":
            function = str(operation.attributes.get("function", "")) or ACTIVATIONS.get(opcode, opcode)
            self._activate(operation, shape, function, operation.operands[0], operation.results[0])
        elif opcode == "activation_gradient":
            self._activation_gradient(operation, shape)
        elif opcode == "select":
            self._select(operation, shape)
        elif opcode == "clamp":
            self._clamp(operation, shape)
        elif opcode in VECTOR_UNARY:
            self._vector_unary(operation, shape)
        else:
            self._binary(operation, shape)

    def _emit(self, operation: Operation, shape: Shape, opcode: Opcode, engines: Iterable[Engine],
              reads: Iterable[Key | None], writes: Key, **options: Any) -> Micro:  # fmt: skip
        micro = Micro(
            opcode,
            tuple(engines),
            [key for key in reads if key is not None],
            writes,
            shape,
            operation,
            **options,
        )
        self._add(micro)
        return micro

    def _alias_or_copy(self, operation: Operation, shape: Shape) -> None:
        """Conversions happen on the way; a broadcast that is asked for as such is copied out."""
        result = operation.results[0]
        operand = operation.operands[0] if operation.operands else result
        source = operand if operation.opcode == "convert" else result
        key, form = self._operand(source) if operation.opcode == "convert" else self._lazy_operand(result)
        if key is not None and (form == "full" or shape is Shape.ROW):
            self._alias[result] = key
            if key in self._made and self._uses[key] == 1:
                self._result.value_of[key] = result
            self._uses[key] += self._uses[result] - 1
            return
        engines = (VECTOR, GPSIMD, SCALAR) if key is not None else (VECTOR, GPSIMD)
        opcode = Opcode.TENSOR_COPY if key is not None else Opcode.MEMSET
        if key is not None and form.startswith("iota"):
            return self._copy_of_iota(operation, shape, key)
        self._emit(operation, shape, opcode, engines, [key], result)
        return None

    def _copy_of_iota(self, operation: Operation, shape: Shape, key: Key) -> None:
        if self._result.externals[key].form == "iota_full":
            self._alias[operation.results[0]] = key
        else:
            self._emit(operation, shape, Opcode.TENSOR_COPY, (VECTOR, GPSIMD), [key], operation.results[0])

    def _foldable(self, key: Key | None, limit: int) -> Micro | None:
        """The TENSOR_SCALAR that makes a key, if nothing else uses it and it has room for more operations."""
        micro = self._made.get(key) if key is not None else None
        if micro is None or micro.opcode is not Opcode.TENSOR_SCALAR or self._uses[micro.writes] != 1:
            return None
        if micro.reduces is not None or len(micro.scalar_operations) > limit:
            return None
        return micro

    def _remove(self, micro: Micro) -> None:
        self._result.micros.remove(micro)
        del self._made[micro.writes]

    def _activate(self, operation: Operation, shape: Shape, function: str, operand: int, result: Key) -> None:
        key, _ = self._operand(operand)
        reads: list[Key | None] = [key]
        before = self._foldable(key, TWO_SCALAR_OPERATIONS)
        if before is not None and before.shape is shape and set(before.scalar_operations) <= AFFINE:
            self._remove(before)
            reads = list(before.reads)
        self._emit(operation, shape, Opcode.ACTIVATE, (SCALAR,), reads, result, activation=function)

    def _rotation(self, operation: Operation, shape: Shape) -> None:
        """Pieces of rows in another order: a copy with strides, the signs on the way."""
        key, _ = self._operand(operation.operands[0])
        opcode = Opcode.TENSOR_SCALAR if operation.attributes.get("signs") else Opcode.TENSOR_COPY
        self._emit(operation, shape, opcode, (VECTOR, SCALAR, GPSIMD), [key], operation.results[0],
                   flags=Flag.STRIDED)  # fmt: skip

    def _activation_gradient(self, operation: Operation, shape: Shape) -> None:
        gradient, value = operation.operands[:2]
        derivative = self._temporary()
        self._activate(operation, shape, str(operation.attributes["function"]), value, derivative)
        key, _ = self._operand(gradient)
        self._emit(
            operation, shape, Opcode.TENSOR_TENSOR, (VECTOR, GPSIMD), [derivative, key], operation.results[0]
        )

    def _select(self, operation: Operation, shape: Shape) -> None:
        (predicate, _), (first, first_form), (second, second_form) = (
            self._operand(value) for value in operation.operands
        )
        if first is None or second is None or "scalar" in (first_form, second_form):
            reads = [first if first is not None else second, predicate]
            if reads[0] is None:
                reads = [predicate]
            self._emit(operation, shape, Opcode.SELECT_REDUCE, (VECTOR,), reads, operation.results[0])
            return
        copied = self._temporary()
        self._emit(operation, shape, Opcode.TENSOR_COPY, (VECTOR, SCALAR, GPSIMD), [second], copied)
        self._emit(
            operation, shape, Opcode.TENSOR_COPY_PREDICATED, (VECTOR,), [first, predicate, copied],
            operation.results[0],
        )  # fmt: skip

    def _clamp(self, operation: Operation, shape: Shape) -> None:
        (low, _), (key, _), (high, _) = (self._operand(value) for value in operation.operands)
        if low is None and high is None:
            self._tensor_scalar(operation, shape, key, ("maximum", "minimum"), None)
            return
        between = self._temporary()
        self._emit(operation, shape, Opcode.TENSOR_TENSOR, (VECTOR,), [key, low], between)
        self._emit(operation, shape, Opcode.TENSOR_TENSOR, (VECTOR,), [between, high], operation.results[0])

    def _vector_unary(self, operation: Operation, shape: Shape) -> None:
        key, _ = self._operand(operation.operands[0])
        if operation.opcode in ("floor", "ceil", "round_nearest_even", "round_nearest_afz"):
            fraction = self._temporary()
            self._emit(operation, shape, Opcode.TENSOR_SCALAR, (VECTOR, GPSIMD), [key], fraction,
                       scalar_operations=("remainder", "add"))  # fmt: skip
            self._emit(operation, shape, Opcode.TENSOR_TENSOR, (VECTOR, GPSIMD), [key, fraction],
                       operation.results[0])  # fmt: skip
        elif operation.opcode == "sign":
            self._activate(operation, shape, "sign", operation.operands[0], operation.results[0])
        else:
            name = "multiply" if operation.opcode == "negate" else operation.opcode
            self._tensor_scalar(operation, shape, key, (name,), None)

    def _binary(self, operation: Operation, shape: Shape) -> None:
        first, first_form = self._operand(operation.operands[0])
        second, second_form = self._operand(operation.operands[1])
        as_scalar = {"constant", "scalar"} | ({"row", "iota_row"} if self._scalar_rows else set())
        if shape is Shape.ROW:
            as_scalar = {"constant", "scalar"}
        name = operation.opcode
        if second_form in as_scalar and first is not None:
            self._tensor_scalar(operation, shape, first, (name,), second)
        elif first_form in as_scalar and second is not None:
            if name == "divide":
                self._reciprocal(operation, shape, second, first)
            else:
                self._tensor_scalar(operation, shape, second, (name,), first)
        elif first is None and second is None:
            self._emit(operation, shape, Opcode.MEMSET, (VECTOR, GPSIMD), [], operation.results[0])
        else:
            self._tensor_tensor(operation, shape, first, second)

    def _tensor_scalar(
        self, operation: Operation, shape: Shape, key: Key | None, names: tuple[str, ...], scalar: Key | None
    ) -> None:
        reads: list[Key | None] = [key, scalar]
        before = self._foldable(key, TWO_SCALAR_OPERATIONS - len(names))
        if before is not None and before.shape is shape:
            self._remove(before)
            reads, names = [*before.reads, scalar], before.scalar_operations + names
        elif scalar is not None and (longer := self._composable(key, shape, names)) is not None:
            self._remove(longer)
            key, names, scalars = self._composed(operation, longer, names, scalar)
            reads = [key, *scalars]
        engines = (VECTOR, SCALAR, GPSIMD) if set(names) <= AFFINE else (VECTOR, GPSIMD)
        self._emit(operation, shape, Opcode.TENSOR_SCALAR, engines, reads, operation.results[0],
                   scalar_operations=names)  # fmt: skip

    def _composable(self, key: Key | None, shape: Shape, names: tuple[str, ...]) -> Micro | None:
        """The full TENSOR_SCALAR that scales and shifts by rows' numbers only, before another that does."""
        before = self._foldable(key, TWO_SCALAR_OPERATIONS)
        if before is None or not self._composes_scalars or {shape, before.shape} != {Shape.FULL}:
            return None
        operations = before.scalar_operations
        is_affine = {*operations, *names} <= AFFINE and len(before.reads) == 1 + len(operations)
        return before if is_affine else None

    def _composed(
        self, operation: Operation, before: Micro, names: tuple[str, ...], scalar: Key
    ) -> tuple[Key, tuple[str, ...], list[Key]]:
        """What is read, and the scale and the shift that do what `before` and one more operation do."""
        steps = (*row_steps(before), *zip(names, (scalar,)))
        found, chain = scale_and_shift(steps, operation, self._temporary)
        for micro in chain:
            self._add(micro)
        return before.reads[0], tuple(name for name, _ in found), [key for _, key in found]

    def _add(self, micro: Micro) -> None:
        self._result.micros.append(micro)
        self._made[micro.writes] = micro
        self._result.value_of.setdefault(micro.writes, micro.source.results[0])

    def _reciprocal(self, operation: Operation, shape: Shape, key: Key, scalar: Key | None) -> None:
        """scalar / tensor: the Scalar engine's reciprocal is 8 times quicker than the Vector engine's."""
        if scalar is None:
            self._activate(operation, shape, "reciprocal", operation.operands[1], operation.results[0])
            return
        inverse = self._temporary()
        self._activate(operation, shape, "reciprocal", operation.operands[1], inverse)
        self._emit(operation, shape, Opcode.TENSOR_SCALAR, (VECTOR, GPSIMD), [inverse, scalar],
                   operation.results[0], scalar_operations=("multiply",))  # fmt: skip

    def _tensor_tensor(
        self, operation: Operation, shape: Shape, first: Key | None, second: Key | None
    ) -> None:
        reads: list[Key | None] = [first, second]
        engines = (GPSIMD,) if operation.opcode in GPSIMD_BINARY else (VECTOR, GPSIMD)
        opcode = Opcode.TENSOR_TENSOR
        names: tuple[str, ...] = ()
        if first == second and operation.opcode == "multiply" and shape is Shape.FULL:
            self._emit(operation, shape, opcode, (VECTOR, SCALAR, GPSIMD), reads, operation.results[0],
                       activation=SQUARE)  # fmt: skip
            return
        if self._joins_scalar and first != second and engines[0] is VECTOR:
            for position, key in enumerate(reads):
                before = self._foldable(key, 1)
                if before is not None and before.shape is shape and set(before.scalar_operations) <= AFFINE:
                    self._remove(before)
                    other = reads[1 - position]
                    reads, opcode = [before.reads[0], other, *before.reads[1:]], Opcode.SCALAR_TENSOR_TENSOR
                    names = (*before.scalar_operations, operation.opcode)
                    break
        if opcode is Opcode.SCALAR_TENSOR_TENSOR:
            engines = (VECTOR,)
        self._emit(
            operation, shape, opcode, engines, reads, operation.results[0], scalar_operations=names
        )  # fmt: skip

    # Reductions

    def _reduction(self, operation: Operation, shape: Shape) -> None:
        key, form = self._operand(operation.operands[0])
        if shape is Shape.LATE:
            if key is not None:
                kind = reduction_kind(operation)
                for result in operation.results[:1]:
                    self._result.partition_reductions.append((key, result, kind))
            return
        if operation.opcode == "moments":
            statistics = self._temporary()
            self._emit(
                operation,
                Shape.FULL,
                Opcode.BN_STATS,
                (VECTOR, SCALAR),
                [key],
                statistics,
                reduces=statistics,
            )
            self._emit(
                operation, Shape.ROW, Opcode.BN_AGGREGATE, (VECTOR,), [statistics], operation.results[0]
            )
            if len(operation.results) > 1:
                self._alias[operation.results[1]] = operation.results[0]
            return
        kind = reduction_kind(operation)
        if kind == "argument":
            self._argument(operation, key)
            return
        self._row_reduction(operation, key, kind, form)

    def _row_reduction(self, operation: Operation, key: Key | None, kind: str, form: str) -> None:
        result = operation.results[0]
        maker = self._made.get(key) if key is not None else None
        if (
            self._scalar_rows and kind == "add" and maker is not None and maker.reduces is None
            and maker.shape is Shape.FULL
            and (maker.opcode in (Opcode.ACTIVATE, Opcode.TENSOR_SCALAR) or maker.activation == SQUARE)
        ):  # fmt: skip
            if maker.activation == SQUARE:
                maker.opcode, maker.engines = Opcode.ACTIVATE, (SCALAR,)
            maker.reduces = result
            maker.flags |= Flag.REDUCES
            self._result.value_of.setdefault(result, result)
            return
        engines = (VECTOR, SCALAR) if kind == "add" and self._scalar_rows else (VECTOR,)
        self._emit(operation, Shape.FULL, Opcode.TENSOR_REDUCE, engines, [key], result, reduces=result)

    def _argument(self, operation: Operation, key: Key | None) -> None:
        value, index = operation.results[0], operation.results[-1]
        self._emit(operation, Shape.FULL, Opcode.MAX8, (VECTOR,), [key], value, reduces=value)
        if index != value:
            self._emit(
                operation, Shape.FULL, Opcode.FIND_INDEX8, (VECTOR,), [key, value], index, reduces=index
            )
            self._result.value_of[index] = index

    # Levels

    def _levels(self) -> None:
        """Level of every key: how many reductions must be complete before it can be computed."""
        level_of = self._result.level_of
        for micro in self._result.micros:
            micro.level = max((level_of.get(key, 0) for key in micro.reads), default=0)
            level_of[micro.writes] = micro.level + (micro.reduces == micro.writes)
            if micro.reduces is not None and micro.reduces != micro.writes:
                level_of[micro.reduces] = micro.level + 1
        self._result.levels = 1 + max(
            [micro.level for micro in self._result.micros if micro.shape is Shape.FULL]
            + [level_of.get(key, 0) for key, _, _ in self._result.partition_reductions]
            + [level_of.get(self._result.stored[v], 0) for v in self._result.stored if self._is_full(v)],
            default=0,
        )

    def _is_full(self, value: int) -> bool:
        return self._group.shapes[value] is Shape.FULL


def _read(operation: Operation) -> tuple[int, ...]:
    return (
        operation.operands[: len(operation.operands) // 2]
        if operation.opcode == "reduce"
        else operation.operands
    )
