"""Puts recurrences that were cut out of a graph into its StableHLO: a function each, which calls the step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from torch_mlir import ir

from neuron_tools.frontends.torch_lowering import mlir
from neuron_tools.frontends.torch_lowering.blocks import declare, entry, order, terminator
from neuron_tools.frontends.torch_lowering.builder import GraphBuilder
from neuron_tools.frontends.torch_lowering.fake import refake
from neuron_tools.frontends.torch_lowering.partition import Cut, Partition, partition
from neuron_tools.frontends.torch_lowering.recurrence import OPCODE, Recurrence

_INDEX = "tensor<i32>"


def join_loops(module: Any, partitioned: Partition) -> Partition:
    """Make a loop of each recurrence.

    Args:
        module: torch-mlir's, of `partitioned.graph`; it is changed. The caller holds `mlir.LOCK`.
        partitioned: How it was cut.

    Returns:
        How it is cut now: the module has no parameters for the recurrences any more.

    Raises:
        LoweringFailure: A step has operators that torch-mlir does not lower.
    """
    loops = list(filter(_is_loop, partitioned.cuts))
    if not loops:
        return partitioned
    function = entry(module)
    block = function.regions[0].blocks[0]
    with module.context, ir.Location.unknown():
        for number, cut in enumerate(loops):
            _call(block, cut, _add_loop(module, block, cut, number))
        order(block)
        made = {place for cut in loops for place in cut.results}
        kept = [place for place in range(len(block.arguments)) if place not in made]
        for place in sorted(made, reverse=True):
            block.erase_argument(place)
        declare(function)
    left = [replace(cut, results=tuple(map(kept.index, cut.results)))
            for cut in partitioned.cuts if not _is_loop(cut)]  # fmt: skip
    return replace(partitioned, cuts=tuple(left))


def has_loops(partitioned: Partition) -> bool:
    """Whether recurrences were cut out."""
    return any(map(_is_loop, partitioned.cuts))


def _is_loop(cut: Cut) -> bool:
    return cut.intrinsic.opcode == OPCODE


def _call(block: Any, cut: Cut, loop: Any) -> None:
    """Call a function where a recurrence was."""
    end = terminator(block)
    made = ir.Operation.create(
        "func.call",
        results=list(ir.FunctionType(ir.TypeAttr(loop.attributes["function_type"]).value).results),
        operands=[end.operands[place] for place in cut.operands],
        attributes={"callee": ir.FlatSymbolRefAttr.get(ir.StringAttr(loop.attributes["sym_name"]).value)},
        loc=ir.Location.name(f"fw:{cut.row}"),
        ip=ir.InsertionPoint(end),
    )
    for place, part in zip(cut.results, cut.parts):
        block.arguments[place].replace_all_uses_with(made.results[part])


def _add_loop(module: Any, block: Any, cut: Cut, number: int) -> Any:
    """Add the functions of a recurrence's step and of its loop to a module; returns the loop's."""
    call: Recurrence = cut.intrinsic.attributes[OPCODE]
    graph, given = _step_graph(call, cut.row)
    lowered = mlir.to_stablehlo(graph, f"step{number}")
    step = entry(lowered)
    step.attributes["sym_visibility"] = ir.StringAttr.get("private")
    operands = [terminator(block).operands[place].type for place in cut.operands]
    written = ir.Module.parse(_LoopText(call, operands, step, given).function(f"loop{number}"))
    _, loop = written.body.operations
    for added in (step, loop):
        module.body.append(added.operation.clone())
    return module.body.operations[len(module.body.operations) - 1]


def _step_graph(call: Recurrence, row: int) -> tuple[Any, tuple[int, ...]]:
    """The step's graph, and where among its results are what is carried on and what the row makes.

    It takes what is carried, a row of each table and what stays fixed.
    """
    builder = GraphBuilder(lambda node: None)
    groups = (
        [call.examples[place] for place in call.carried],
        [refake(call.examples[place][0]) for place in call.tables],
        [call.examples[place] for place in call.fixed],
    )
    nodes = [[builder.parameter(value) for value in group] for group in groups]
    carried, made = builder.call(call.step, nodes, {}, row)
    cut = partition(builder.parameters, [*carried, *made])
    if cut.cuts:
        raise mlir.LoweringFailure([], f"{cut.cuts[0].intrinsic.opcode} within a recurrence")
    return cut.graph, cut.results


class _LoopText:
    """Writes a loop over rows: an index, what is carried and the rows made so far go round."""

    def __init__(self, call: Recurrence, operands: Sequence[Any], step: Any, given: Sequence[int]) -> None:
        self._call = call
        self._operands = operands
        self._step_name = ir.StringAttr(step.attributes["sym_name"]).value
        self._step_type = ir.FunctionType(ir.TypeAttr(step.attributes["function_type"]).value)
        self._rows = operands[call.tables[0]].shape[0]
        types = [self._step_type.results[place] for place in given]
        self._carried, made = types[: len(call.carried)], types[len(call.carried) :]
        self._made = [ir.RankedTensorType.get([self._rows, *each.shape], each.element_type) for each in made]
        self._row = "%from_end" if call.backwards else "%at"
        self._given = [f"%done#{place}" for place in given]

    def function(self, name: str) -> str:
        """The text of the step's declaration and of the loop's function."""
        taken = ", ".join(f"%operand{at}: {kind}" for at, kind in enumerate(self._operands))
        kinds = [*self._carried, *self._made]
        begins = [f"%operand{place}" for place in self._call.carried] + _names("empty", self._made)
        round_ = [*_names("carried", self._carried), *_names("made", self._made)]
        types, results = _joined(kinds), [f"%last#{at + 1}" for at in range(len(kinds))]
        places = _joined(f"{place} = {value}" for place, value in zip(round_, begins))
        return f"""
        func.func private @{self._step_name}{self._step_type}
        func.func private @{name}({taken}) -> ({types}) {{
          %first = stablehlo.constant dense<0> : {_INDEX}
          %one = stablehlo.constant dense<1> : {_INDEX}
          %final = stablehlo.constant dense<{self._rows - 1}> : {_INDEX}
          %rows = stablehlo.constant dense<{self._rows}> : {_INDEX}
          {self._empty()}
          %last:{len(kinds) + 1} = stablehlo.while(%at = %first, {places}) : {_INDEX}, {types}
          cond {{
            %goes_on = stablehlo.compare LT, %at, %rows : ({_INDEX}, {_INDEX}) -> tensor<i1>
            stablehlo.return %goes_on : tensor<i1>
          }} do {{
            {self._body()}
          }}
          return {_joined(results)} : {types}
        }}
        """

    def _empty(self) -> str:
        """What the rows that are made are written into."""
        return "\n".join(
            f"%empty{at} = stablehlo.constant dense<{_zero(kind)}> : {kind}"
            for at, kind in enumerate(self._made)
        )

    def _body(self) -> str:
        """One trip: the tables' rows, the step, and its own rows in their places."""
        arguments = [*_names("carried", self._carried), *_names("row", self._call.tables),
                     *(f"%operand{place}" for place in self._call.fixed)]  # fmt: skip
        step = f"%done:{len(self._step_type.results)} = func.call @{self._step_name}({_joined(arguments)})"
        following = self._given[: len(self._carried)] + _names("written", self._made)
        types = _joined([_INDEX, *self._carried, *self._made])
        return "\n".join(
            [
                f"%from_end = stablehlo.subtract %final, %at : {_INDEX}" if self._call.backwards else "",
                *(self._read(at, place) for at, place in enumerate(self._call.tables)),
                f"{step} : {self._step_type}",
                *(self._write(at, kind) for at, kind in enumerate(self._made)),
                f"%next = stablehlo.add %at, %one : {_INDEX}",
                f"stablehlo.return {_joined(['%next', *following])} : {types}",
            ]
        )

    def _read(self, at: int, place: int) -> str:
        """This trip's row of a table."""
        table = self._operands[place]
        cut, row = _row_types(table)
        taken = f"%operand{place}, {self._indices(table)}, sizes = {cut.shape}"
        return (
            f"%cut{at} = stablehlo.dynamic_slice {taken} : "
            f"({_joined([table, *[_INDEX] * table.rank])}) -> {cut}\n"
            f"%row{at} = stablehlo.reshape %cut{at} : ({cut}) -> {row}"
        )

    def _write(self, at: int, table: Any) -> str:
        """What the step made, as this trip's row."""
        cut, row = _row_types(table)
        return (
            f"%given{at} = stablehlo.reshape {self._given[len(self._carried) + at]} : ({row}) -> {cut}\n"
            f"%written{at} = stablehlo.dynamic_update_slice %made{at}, %given{at}, {self._indices(table)} : "
            f"({_joined([table, cut, *[_INDEX] * table.rank])}) -> {table}"
        )

    def _indices(self, table: Any) -> str:
        return _joined([self._row, *["%first"] * (table.rank - 1)])


def _row_types(table: Any) -> tuple[Any, Any]:
    """The types of a row of a table, with its first axis and without."""
    shape = list(table.shape)[1:]
    return tuple(ir.RankedTensorType.get(each, table.element_type) for each in ([1, *shape], shape))


def _names(name: str, values: Sequence[Any]) -> list[str]:
    return [f"%{name}{at}" for at in range(len(values))]


def _joined(parts: Iterable[Any]) -> str:
    return ", ".join(map(str, parts))


def _zero(kind: Any) -> str:
    element = str(kind.element_type)
    return "false" if element == "i1" else "0" if element.startswith("i") else "0.0"
