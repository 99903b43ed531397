"""Reads a StableHLO module, held by any MLIR Python binding, into `hlo` records.

Only the generic operation interface is used (name, operands, results, attributes, regions, location),
which the bindings of torch-mlir and of JAX share; nothing of either is imported here.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol

from neuron_tools.compiler import hlo
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen
from neuron_tools.records.program import FrameworkOperation

MAX_CONSTANT_ELEMENTS = 64
"""Constants with more elements than this keep their shape only: a Program's time never depends on them."""
_RANKS = ("replica_groups", "source_target_pairs")
"""Attributes that say between which ranks a collective moves data: kept whole."""

_FRAMEWORK_ROW = re.compile(r"\bfw:(\d+)")
_TENSOR = re.compile(r"^tensor<((?:[0-9?]+x)*)([^,>]+).*>$", re.DOTALL)
_ELEMENT = re.compile(r"tensor<(?:[^<>]|<[^<>]*>)*>")
_ENUM = re.compile(r"^#\w+<\w+ (\w+)>$")
_STRUCT = re.compile(r"^#\w+\.\w+<(.*)>$", re.DOTALL)
_FIELD = re.compile(r"(\w+) = (\[[^\]]*\]|[\w.-]+)")
_CONVOLUTION = re.compile(r"\[([^\]]*)\]x\[([^\]]*)\]->\[([^\]]*)\]")
_TYPED_NUMBER = re.compile(r"^(-?[0-9][\w.+-]*) : \w+$")
_CALLS = {"func.call": "callee", "call": "callee", "stablehlo.composite": "decomposition"}
_TERMINATORS = {"func.return", "stablehlo.return", "return", "mhlo.return", "sdy.return"}
_DONATED = "tf.aliasing_output"
_HLO_ALIASES = "mhlo.input_output_alias"
_HLO_ALIAS = re.compile(r"parameter_number = (\d+).*?output_index = array<i64(?:: (\d+))?>")
_COPY = "mhlo.copy"  # between XLA's own passes; it removes them where layouts are equal
_ELEMENT_OF = "stablehlo.get_tuple_element"
_OF_XLA = {
    "stablehlo.dot": "dot_general",
    "mhlo.topk": "top_k",
    "stablehlo.partition_id": "constant",  # each core's own, there before it runs
    "stablehlo.replica_id": "constant",
}
"""What XLA writes where frameworks write another operation."""
_MANUAL_COMPUTATION = "sdy.manual_computation"


class StableHloError(NeuronToolsError):
    """The module is not one that can be read."""


class Origins(Protocol):
    """Tells which framework operations an MLIR operation came from."""

    @property
    def framework(self) -> Sequence[FrameworkOperation]:
        """The framework operations that rows stand for; may grow while a module is read."""

    def rows(self, operation: Any, calls: Sequence[Any]) -> tuple[int, ...]:
        """Rows of `framework` that `operation` came from; () where it does not say.

        Args:
            operation: The MLIR operation.
            calls: The call operations that are being expanded around it, outermost first.
        """


@frozen
class TaggedOrigins:
    """Origins of a module whose locations name `fw:<row>`."""

    framework: tuple[FrameworkOperation, ...] = ()

    def rows(self, operation: Any, calls: Sequence[Any]) -> tuple[int, ...]:
        """The rows that the operation's own location names."""
        if not self.framework:
            return ()
        named = dict.fromkeys(int(row) for row in _FRAMEWORK_ROW.findall(str(operation.location)))
        return tuple(row for row in named if row < len(self.framework))


def read_module(
    mlir_module: Any,
    *,
    framework: tuple[FrameworkOperation, ...] = (),
    origins: Origins | None = None,
    parameter_kinds: tuple[str, ...] = (),
    parameter_names: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
) -> hlo.Module:
    """Turn an MLIR module with one entry function into an `hlo.Module`; calls are expanded in place.

    Args:
        mlir_module: An `ir.Module` of torch-mlir's or JAX's binding, in the StableHLO (or CHLO) dialect.
        framework: The framework operations; an operation whose location names `fw:<row>` came from that row.
        origins: Tells them in another way instead.
        parameter_kinds: "input" or "weight" per parameter; empty means all inputs.
        parameter_names: A name per parameter; empty means none is known.
        warnings: Texts to carry along, e.g. operations that could not be lowered.

    Raises:
        StableHloError: There is no function, or a value has no static ranked tensor type.
    """
    functions = {_symbol(function): function for function in _functions(mlir_module)}
    if not functions:
        raise StableHloError("The StableHLO module contains no function: lower a function called main.")
    entry = functions.get("main") or next(iter(functions.values()))
    origins = origins or TaggedOrigins(framework)
    reader = _Reader(functions, origins)
    block = entry.regions[0].blocks[0]
    parameters = tuple(reader.define(argument) for argument in block.arguments)
    operations, results = reader.block(block)
    aliases = _aliases(entry) or _aliases_of_hlo(mlir_module)
    return hlo.Module(
        name=_symbol(entry),
        values=tuple(reader.values),
        parameters=parameters,
        operations=inherit_framework(operations, len(origins.framework)),
        results=results,
        framework=tuple(origins.framework),
        parameter_kinds=parameter_kinds,
        parameter_names=parameter_names,
        warnings=warnings,
        aliases=aliases,
    )


def _aliases(function: Any) -> tuple[tuple[int, int], ...]:
    """(result, parameter) positions of arguments that are donated to a result (`tf.aliasing_output`)."""
    if "arg_attrs" not in function.attributes:
        return ()
    given = enumerate(function.attributes["arg_attrs"])
    found = (
        (str(attributes[_DONATED]), position) for position, attributes in given if _DONATED in attributes
    )
    return tuple((int(_parse(result)), position) for result, position in found)


def _aliases_of_hlo(module: Any) -> tuple[tuple[int, int], ...]:
    """The same where the module was HLO, which says it of the whole module."""
    attributes = module.operation.attributes
    text = str(attributes[_HLO_ALIASES]) if _HLO_ALIASES in attributes else ""
    return tuple((int(result or 0), int(parameter)) for parameter, result in _HLO_ALIAS.findall(text))


def inherit_framework(operations: Sequence[hlo.Operation], rows: int) -> tuple[hlo.Operation, ...]:
    """Give operations without a framework row that of a user, else of a producer, else of a neighbour.

    Lowering makes constants, broadcasts and converts of its own; each serves the operation that uses it.
    `rows` is the size of the framework table; with 0 nothing can be inherited.
    """
    if not rows or all(operation.framework for operation in operations):
        return tuple(operations)
    known: list[tuple[int, ...]] = [operation.framework for operation in operations]
    _inherit_from_users(operations, known)
    _inherit_from_producers(operations, known)
    fallback = next((row for row in known if row), (0,))
    completed = []
    for operation, row in zip(operations, known):
        fallback = row or fallback
        completed.append(operation if operation.framework else replace(operation, framework=fallback))
    return tuple(completed)


def _inherit_from_users(operations: Sequence[hlo.Operation], known: list[tuple[int, ...]]) -> None:
    of_user: dict[int, tuple[int, ...]] = {}
    for index in range(len(operations) - 1, -1, -1):
        operation = operations[index]
        if not known[index]:
            known[index] = next((of_user[r] for r in operation.results if r in of_user), ())
        if known[index]:
            for operand in operation.operands:
                of_user[operand] = known[index]


def _inherit_from_producers(operations: Sequence[hlo.Operation], known: list[tuple[int, ...]]) -> None:
    of_producer: dict[int, tuple[int, ...]] = {}
    for index, operation in enumerate(operations):
        if not known[index]:
            known[index] = next((of_producer[o] for o in operation.operands if o in of_producer), ())
        if known[index]:
            of_producer.update(dict.fromkeys(operation.results, known[index]))


class _Reader:
    """Numbers the values of one module and turns its operations into records."""

    def __init__(self, functions: Mapping[str, Any], origins: Origins) -> None:
        self.values: list[hlo.Value] = []
        self._ids: dict[Any, int] = {}
        self._tuples: dict[Any, tuple[int, ...]] = {}
        self._functions = functions
        self._origins = origins
        self._calls: list[Any] = []

    def define(self, value: Any) -> int:
        """Give an MLIR value the next number."""
        self._ids[value] = self._next(str(value.type))
        return self._ids[value]

    def _next(self, type_text: str) -> int:
        number = len(self.values)
        self.values.append(hlo.Value(number, _tensor_type(type_text)))
        return number

    def _define_all(self, value: Any) -> tuple[int, ...]:
        """Give each element of a tuple a number, and any other value its own."""
        elements = _ELEMENT.findall(str(value.type)) if str(value.type).startswith("tuple<") else []
        if not elements:
            return (self.define(value),)
        self._tuples[value] = tuple(map(self._next, elements))
        return self._tuples[value]

    def _stand_for(self, operation: Any) -> Iterable[hlo.Operation]:
        self._ids[operation.results[0]] = self._ids[operation.operands[0]]
        return ()

    def _take_element(self, operation: Any, index: int) -> Iterable[hlo.Operation]:
        self._ids[operation.results[0]] = self._tuples[operation.operands[0]][index]
        return ()

    def block(
        self, block: Any, inherited: tuple[int, ...] = ()
    ) -> tuple[list[hlo.Operation], tuple[int, ...]]:
        """Records of a block's operations and the values that its terminator returns."""
        operations: list[hlo.Operation] = []
        for view in block.operations:
            operation = view.operation
            if operation.name in _TERMINATORS:
                return operations, tuple(self._ids[operand] for operand in operation.operands)
            operations.extend(self._operation(operation, inherited))
        return operations, ()

    def _operation(self, operation: Any, inherited: tuple[int, ...]) -> Iterable[hlo.Operation]:
        framework = self._origins.rows(operation, self._calls) or inherited
        attributes = dict(_attributes(operation))
        callee = self._functions.get(str(attributes.get(_CALLS.get(operation.name, ""), "")))
        if callee is not None:
            return self._call(operation, callee, framework)
        if operation.name == _MANUAL_COMPUTATION:
            return self._inline(operation, operation.regions[0].blocks[0], framework)
        if operation.name == _COPY:
            return self._stand_for(operation)
        if operation.name == _ELEMENT_OF:
            return self._take_element(operation, attributes["index"])
        return (self._record(operation, attributes, framework),)

    def _call(self, operation: Any, callee: Any, framework: tuple[int, ...]) -> Iterable[hlo.Operation]:
        self._calls.append(operation)
        operations = self._inline(operation, callee.regions[0].blocks[0], framework)
        self._calls.pop()
        return operations

    def _inline(self, operation: Any, block: Any, framework: tuple[int, ...]) -> Iterable[hlo.Operation]:
        """The operations of a block, its arguments standing for the operands.

        Inside a manual computation the arguments are this core's shards: a whole tensor that is read there
        is taken to be the shard from the start.
        """
        for argument, operand in zip(block.arguments, operation.operands):
            number = self._ids[argument] = self._ids[operand]
            type_ = _tensor_type(str(argument.type))
            if type_ != self.values[number].type:
                self.values[number] = replace(self.values[number], type=type_)
        operations, results = self.block(block, framework)
        self._ids.update(zip(operation.results, results))
        return operations

    def _record(
        self, operation: Any, attributes: dict[str, Any], framework: tuple[int, ...]
    ) -> hlo.Operation:
        operands = tuple(self._ids[operand] for operand in operation.operands)
        results = tuple(number for result in operation.results for number in self._define_all(result))
        regions = tuple(self._region(region) for region in operation.regions if len(region.blocks))
        opcode = _OF_XLA.get(operation.name) or operation.name.rpartition(".")[2]
        if operation.name == "stablehlo.dot":
            attributes |= _general_dot(len(self.values[operands[0]].type.shape))
        return hlo.Operation(opcode, operands, results, attributes, framework, regions)

    def _region(self, region: Any) -> hlo.Region:
        block = region.blocks[0]
        parameters = tuple(self.define(argument) for argument in block.arguments)
        operations, results = self.block(block)
        return hlo.Region(parameters, tuple(operations), results)


def _general_dot(left_rank: int) -> dict[str, Any]:
    """What a `dot` without dimension numbers contracts: the last axis with the first."""
    numbers = {"lhs_contracting_dimensions": (left_rank - 1,), "rhs_contracting_dimensions": (0,)}
    return {"dot_dimension_numbers": numbers}


def _functions(mlir_module: Any) -> Iterator[Any]:
    for view in mlir_module.operation.regions[0].blocks[0].operations:
        if view.operation.name == "func.func" and len(view.operation.regions[0].blocks):
            yield view.operation


def _symbol(function: Any) -> str:
    return str(function.attributes["sym_name"]).strip('"')


@lru_cache(maxsize=65536)
def _tensor_type(text: str) -> hlo.TensorType:
    """`tensor<4x8xf32>` (encoding ignored) -> TensorType; tokens and other types count as empty booleans."""
    match = _TENSOR.match(text)
    if match is None:
        return hlo.TensorType((0,), "i1")
    extents = match[1].split("x")[:-1]
    if "?" in extents:
        raise StableHloError(f"The type {text} has a dynamic extent: give every dimension a fixed size.")
    return hlo.TensorType(tuple(int(extent) for extent in extents), match[2].strip())


def _attributes(operation: Any) -> Iterator[tuple[str, Any]]:
    if _is_complex_constant(operation):
        yield "value", None
        return
    table = operation.attributes
    for entry in table:
        # Newer bindings iterate over names, older ones over named attributes.
        name, attribute = (entry, table[entry]) if isinstance(entry, str) else (entry.name, entry.attr)
        yield name, _plain(name, attribute)
        if name == "replica_groups":
            yield f"{name}_shape", _tensor_type(str(attribute.type)).shape


def _is_complex_constant(operation: Any) -> bool:
    """Whether the bindings cannot hold its value: some raise, older ones end the process."""
    return operation.name == "stablehlo.constant" and "complex<" in str(operation.results[0].type)


def _plain(name: str, attribute: Any) -> Any:
    """An attribute as a Python number, string, tuple or dict."""
    kind = type(attribute).__name__
    if kind.startswith("Dense") and kind.endswith("ElementsAttr"):
        most = sys.maxsize if name in _RANKS else MAX_CONSTANT_ELEMENTS
        return _elements(attribute, most, keep_splat=name == "value")
    return _parse(str(attribute))


def _elements(attribute: Any, most: int, *, keep_splat: bool) -> Any:
    """A dense constant: one number for a splat, a flat tuple of up to `most`, None for a larger one."""
    try:
        count = len(attribute)
        if attribute.is_splat:
            number = attribute.get_splat_value().value
            return number if keep_splat else (number,) * count
        return tuple(attribute[i] for i in range(count)) if count <= most else None
    except (AttributeError, TypeError, ValueError, IndexError):
        return None  # resources, complex and other element types: their values never matter to time


@lru_cache(maxsize=16384)
def _parse(text: str) -> Any:
    """The printed form of an attribute as a plain Python value; unknown forms stay text."""
    if text in ("true", "unit"):
        return True
    if text == "false":
        return False
    if text.startswith("array<"):
        body = text[text.index("<") + 1 : -1].partition(":")[2]
        return tuple(_number(item) for item in body.split(",") if item.strip())
    if text.startswith("["):
        items = text[1:-1].split(",") if "<" not in text else re.split(r",\s*(?=#)", text[1:-1])
        return tuple(_parse(item.strip()) for item in items if item.strip())
    if text.startswith("#"):
        return _structure(text)
    number = _TYPED_NUMBER.match(text)
    return _number(number[1] if number else text.lstrip("@").strip('"'))


def _structure(text: str) -> Any:
    enum = _ENUM.match(text)
    if enum:
        return enum[1]
    convolution = _CONVOLUTION.search(text)
    if convolution:
        sides = (tuple(dim.strip() for dim in side.split(",")) for side in convolution.groups())
        return dict(zip(("input", "kernel", "output"), sides))
    struct = _STRUCT.match(text)
    return {name: _parse(value) for name, value in _FIELD.findall(struct[1])} if struct else text


def _number(text: str) -> Any:
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
