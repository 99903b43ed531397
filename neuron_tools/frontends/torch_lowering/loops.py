"""Puts loops that were cut out of a graph into its StableHLO: a function each, which calls the step."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import fx
from torch_mlir import ir

from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.frontends.torch_lowering import mlir
from neuron_tools.frontends.torch_lowering.blocks import declare, end_with, entry, insert, order, terminator
from neuron_tools.frontends.torch_lowering.builder import GraphBuilder
from neuron_tools.frontends.torch_lowering.fake import refake, tensor_type
from neuron_tools.frontends.torch_lowering.partition import Cut, Partition, partition
from neuron_tools.frontends.torch_lowering.recurrence import OPCODE, DescribedStep, Recurrence, Step
from neuron_tools.frontends.torch_lowering.repetition import OPCODE as REPEATED, Repetition
from neuron_tools.records.program import FrameworkOperation

_INDEX = "tensor<i32>"
_CALL = "neuron.operation_of_step"
"""Stands in a step for an operation that was cut out of it."""


@dataclass
class InLoops:
    """What the loops of a module have beside it.

    Attributes:
        framework: Rows of the module; those of steps come behind it.
        spells: Whether steps are spelled out in StableHLO, for a compiler that is not ours.
        cuts: What was cut out of steps and left as calls; `with_operations_of_steps` puts it back.
    """

    framework: list[FrameworkOperation] = field(default_factory=list)
    spells: bool = True
    cuts: list[Cut] = field(default_factory=list)


def join_loops(module: Any, partitioned: Partition, inside: InLoops) -> Partition:
    """Make a loop of each recurrence and each repetition.

    Args:
        module: torch-mlir's, of `partitioned.graph`; it is changed. The caller holds `mlir.LOCK`.
        partitioned: How it was cut.
        inside: It gets what the loops' steps have.

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
            _call(block, cut, _add_loop(module, block, cut, number, inside))
        order(block)
        made = {place for cut in loops for place in cut.results}
        kept = [place for place in range(len(block.arguments)) if place not in made]
        for place in sorted(made, reverse=True):
            block.erase_argument(place)
        declare(function)
    left = [replace(cut, results=tuple(map(kept.index, cut.results)))
            for cut in partitioned.cuts if not _is_loop(cut)]  # fmt: skip
    return replace(partitioned, cuts=tuple(left))


def with_operations_of_steps(module: Module, inside: InLoops) -> Module:
    """A module that was read, with our operations where its loops have calls in their place.

    Args:
        module: It.
        inside: What `join_loops` left there.
    """
    if not inside.cuts:
        return module
    warnings = (cut.intrinsic.warning for cut in inside.cuts if cut.intrinsic.warning)
    return replace(
        module,
        operations=_put_back(module.operations, inside.cuts),
        warnings=tuple(dict.fromkeys((*module.warnings, *warnings))),
    )


def _put_back(operations: Sequence[Operation], cuts: Sequence[Cut]) -> tuple[Operation, ...]:
    return tuple(_operation(each, cuts) for each in operations)


def _operation(operation: Operation, cuts: Sequence[Cut]) -> Operation:
    if operation.attributes.get("call_target_name") == _CALL:
        cut = cuts[int(operation.attributes["backend_config"])]
        return replace(operation, opcode=cut.intrinsic.opcode, attributes=cut.attributes)
    regions = (replace(each, operations=_put_back(each.operations, cuts)) for each in operation.regions)
    return replace(operation, regions=tuple(regions)) if operation.regions else operation


def has_loops(partitioned: Partition) -> bool:
    """Whether recurrences were cut out."""
    return any(map(_is_loop, partitioned.cuts))


def _is_loop(cut: Cut) -> bool:
    return cut.intrinsic.opcode in (OPCODE, REPEATED)


def _call(block: Any, cut: Cut, loop: Any) -> None:
    """Call a function where a recurrence was."""
    operands = [terminator(block).operands[place] for place in cut.operands]
    types = ir.FunctionType(ir.TypeAttr(loop.attributes["function_type"]).value).results
    callee = ir.FlatSymbolRefAttr.get(ir.StringAttr(loop.attributes["sym_name"]).value)
    made = insert(block, "func.call", operands, types, {"callee": callee}, cut.row)
    for place, part in zip(cut.results, cut.parts):
        block.arguments[place].replace_all_uses_with(made.results[part])


def _add_loop(module: Any, block: Any, cut: Cut, number: int, inside: InLoops) -> Any:
    """Add the functions of a loop's steps and its own to a module; returns the loop's."""
    operands = [terminator(block).operands[place].type for place in cut.operands]
    name = f"loop{number}"
    if cut.intrinsic.opcode == REPEATED:
        steps, text = _repetition(cut, operands, name, inside)
    else:
        steps, text = _recurrence(cut, operands, name, inside)
    written = ir.Module.parse(text)
    *_, loop = written.body.operations
    for added in (*(step.function for step in steps), loop):
        module.body.append(added.operation.clone())
    return module.body.operations[len(module.body.operations) - 1]


def _recurrence(
    cut: Cut, operands: Sequence[Any], name: str, inside: InLoops
) -> tuple[Sequence[_Called], str]:
    """The step and the loop's text."""
    call: Recurrence = cut.intrinsic.attributes[OPCODE]
    groups = (
        [call.examples[place] for place in call.carried],
        [refake(call.examples[place][0]) for place in call.tables],
        [call.examples[place] for place in call.fixed],
    )
    step, absent = _lowered(call.step, groups, f"{name}_step", cut.row, inside)
    return [step], _LoopText(call, operands, step, absent).function(name)


def _repetition(
    cut: Cut, operands: Sequence[Any], name: str, inside: InLoops
) -> tuple[Sequence[_Called], str]:
    """The condition and the step, and the loop's text."""
    call: Repetition = cut.intrinsic.attributes[REPEATED]
    carried, fixed = ([call.examples[place] for place in group] for group in (call.carried, call.fixed))
    steps = [
        _lowered(each, (carried, [], fixed), f"{name}_{role}", cut.row, inside)[0]
        for each, role in ((call.condition, "condition"), (call.step, "step"))
    ]
    return steps, _repetition_text(call, operands, steps, name)


def _lowered(
    step: Step, groups: Sequence[Sequence[Any]], name: str, row: int, inside: InLoops
) -> tuple[_Called, dict[int, Any]]:
    """A step's function, and by place what nothing makes of that which it gives."""
    partitioned, absent = _step_graph(step, groups, row, inside)
    module = mlir.to_stablehlo(partitioned.graph, name)
    entry(module).attributes["sym_visibility"] = ir.StringAttr.get("private")
    return _Called(module, _leave_calls(entry(module), partitioned, inside)), absent


def _leave_calls(step: Any, partitioned: Partition, inside: InLoops) -> tuple[int, ...]:
    """Put a call in a step for each operation that was cut out; places of what it gives among its results."""
    if not partitioned.cuts:
        return partitioned.results
    block = step.regions[0].blocks[0]
    taken = len(block.arguments) - sum(len(cut.results) for cut in partitioned.cuts)
    for cut in partitioned.cuts:
        attributes = {"call_target_name": _CALL, "backend_config": str(len(inside.cuts))}
        inside.cuts.append(cut)
        results = [block.arguments[place] for place in cut.results]
        operands = [terminator(block).operands[place] for place in cut.operands]
        named = {name: ir.StringAttr.get(text) for name, text in attributes.items()}
        types = [each.type for each in results]
        made = insert(block, "stablehlo.custom_call", operands, types, named, cut.row)
        for before, after in zip(results, made.results):
            before.replace_all_uses_with(after)
    order(block)
    end_with(block, partitioned.results)
    for place in reversed(range(taken, len(block.arguments))):
        block.erase_argument(place)
    declare(step)
    return tuple(range(len(partitioned.results)))


def _step_graph(
    step: Step, groups: Sequence[Sequence[Any]], row: int, inside: InLoops
) -> tuple[Partition, dict[int, Any]]:
    """The step's graph: of what is carried, a row of each table and what stays fixed.

    Its results are what is carried on and what the row makes, but for those that nothing makes: states of
    random generators, say, which an operator hands on to its backward pass alone. By place, these are like
    the tensors that are given too.
    """
    builder = GraphBuilder(lambda node: None) if inside.spells else GraphBuilder()
    nodes = [[builder.parameter(value) for value in group] for group in groups]
    if isinstance(step, DescribedStep):
        made = _described(builder, step, nodes, row, inside.framework)
    else:
        made = [node for group in builder.call(step, nodes, {}, row) for node in group]
    absent = {at: value for at, value in enumerate(made) if not isinstance(value, fx.Node)}
    cut = partition(builder.parameters, [value for at, value in enumerate(made) if at not in absent])
    refused = [each for each in cut.cuts if inside.spells or _is_loop(each)]
    if refused:
        raise mlir.LoweringFailure([], f"{refused[0].intrinsic.opcode} within a loop")
    return cut, absent


def _described(
    builder: GraphBuilder,
    step: DescribedStep,
    nodes: Sequence[Sequence[fx.Node]],
    row: int,
    framework: list[FrameworkOperation],
) -> list[Any]:
    """Add a step's calls, each with a row of its own behind those that there are; where there are any.

    Returns:
        The step's results; the fake tensor of one that no call makes.
    """
    inputs = [node for group in nodes for node in group]
    graph = step.trace([refake(node.meta["val"]) for node in inputs])
    values: dict[fx.Node, Any] = dict(zip(graph.nodes, inputs))
    has_rows = bool(framework)
    for node in graph.nodes:
        if node.op == "output":
            return [each.meta["val"] if values[each] is None else values[each] for each in node.args[0]]
        if node.op == "get_attr":
            value = getattr(graph.owning_module, str(node.target))
            values[node] = builder.constant(value, str(node.target), row)
        if node.op != "call_function":
            continue
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
        if node.target is operator.getitem:
            values[node] = args[0][args[1]]
            continue
        if has_rows:
            framework.append(step.describe(node))
        row_of_call = len(framework) - 1 if has_rows else row
        values[node] = builder.call(node.target, args, dict(kwargs), row_of_call, node.meta.get("val"))
    return []


class _Called:
    """A step's function, and how it is called.

    Args:
        module: Of the function alone, which lives as long as it does.
        given: Places of what it gives among its results.
    """

    def __init__(self, module: Any, given: Sequence[int]) -> None:
        self._module = module
        function = self.function
        self._name = ir.StringAttr(function.attributes["sym_name"]).value
        self._type = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        self._given = given

    @property
    def function(self) -> Any:
        """The function."""
        return entry(self._module)

    @property
    def types(self) -> list[Any]:
        """The types of what it gives."""
        return [self._type.results[place] for place in self._given]

    def declaration(self) -> str:
        """What stands before a call."""
        return f"func.func private @{self._name}{self._type}"

    def call(self, arguments: Iterable[str]) -> str:
        """The call, whose results are `%done`."""
        results = f"%done:{len(self._type.results)}"
        return f"{results} = func.call @{self._name}({_joined(arguments)}) : {self._type}"

    @property
    def given(self) -> list[str]:
        """Names of what a call gives."""
        return [f"%done#{place}" for place in self._given]

    def end(self) -> str:
        """What hands this to the loop."""
        return f"stablehlo.return {_joined(self.given)} : {_joined(self.types)}"


def _repetition_text(
    call: Repetition, operands: Sequence[Any], functions: Sequence[_Called], name: str
) -> str:
    """The text of a loop that goes on as long as its condition holds, with the steps' declarations."""
    condition, step = functions
    kinds = [operands[place] for place in call.carried]
    taken = _joined(f"%operand{at}: {kind}" for at, kind in enumerate(operands))
    begins = _joined(f"%carried{at} = %operand{place}" for at, place in enumerate(call.carried))
    arguments = [*_names("carried", kinds), *(f"%operand{place}" for place in call.fixed)]
    results = _joined(f"%last#{at}" for at in range(len(kinds)))
    return f"""
    {condition.declaration()}
    {step.declaration()}
    func.func private @{name}({taken}) -> ({_joined(kinds)}) {{
      %last:{len(kinds)} = stablehlo.while({begins}) : {_joined(kinds)}
          attributes {{trip_count = {call.trips} : i64}}
      cond {{
        {condition.call(arguments)}
        {condition.end()}
      }} do {{
        {step.call(arguments)}
        {step.end()}
      }}
      return {results} : {_joined(kinds)}
    }}
    """


class _LoopText:
    """Writes a loop over rows: an index, what is carried and the rows made so far go round."""

    def __init__(
        self,
        call: Recurrence,
        operands: Sequence[Any],
        step: _Called,
        absent: Mapping[int, Any],
    ) -> None:
        self._call = call
        self._operands = operands
        self._step = step
        self._rows = operands[call.tables[0]].shape[0]
        types = self._step.types
        self._carried, made = types[: len(call.carried)], types[len(call.carried) :]
        self._made = [ir.RankedTensorType.get([self._rows, *each.shape], each.element_type) for each in made]
        self._row = "%from_end" if call.backwards else "%at"
        self._absent = {at: _table_type(self._rows, row) for at, row in absent.items()}

    def function(self, name: str) -> str:
        """The text of the step's declaration and of the loop's function."""
        taken = ", ".join(f"%operand{at}: {kind}" for at, kind in enumerate(self._operands))
        kinds = [*self._carried, *self._made]
        begins = [f"%operand{place}" for place in self._call.carried] + _names("empty", self._made)
        round_ = [*_names("carried", self._carried), *_names("made", self._made)]
        types, made = _joined(kinds), iter(f"%last#{at + 1}" for at in range(len(kinds)))
        count = len(kinds) + len(self._absent)
        results = [f"%absent{at}" if at in self._absent else next(made) for at in range(count)]
        left = iter(kinds)
        given = _joined(self._absent[at] if at in self._absent else next(left) for at in range(count))
        places = _joined(f"{place} = {value}" for place, value in zip(round_, begins))
        return f"""
        {self._step.declaration()}
        func.func private @{name}({taken}) -> ({given}) {{
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
          return {_joined(results)} : {given}
        }}
        """

    def _empty(self) -> str:
        """What the rows that are made are written into, and what stays so."""
        tables = [(f"%empty{at}", kind) for at, kind in enumerate(self._made)]
        tables += [(f"%absent{at}", kind) for at, kind in self._absent.items()]
        return "\n".join(
            f"{name} = stablehlo.constant dense<{_zero(kind)}> : {kind}" for name, kind in tables
        )

    def _body(self) -> str:
        """One trip: the tables' rows, the step, and its own rows in their places."""
        arguments = [*_names("carried", self._carried), *_names("row", self._call.tables),
                     *(f"%operand{place}" for place in self._call.fixed)]  # fmt: skip
        following = self._step.given[: len(self._carried)] + _names("written", self._made)
        types = _joined([_INDEX, *self._carried, *self._made])
        return "\n".join(
            [
                f"%from_end = stablehlo.subtract %final, %at : {_INDEX}" if self._call.backwards else "",
                *(self._read(at, place) for at, place in enumerate(self._call.tables)),
                self._step.call(arguments),
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
            f"%given{at} = stablehlo.reshape {self._step.given[len(self._carried) + at]} : ({row}) -> {cut}\n"
            f"%written{at} = stablehlo.dynamic_update_slice %made{at}, %given{at}, {self._indices(table)} : "
            f"({_joined([table, cut, *[_INDEX] * table.rank])}) -> {table}"
        )

    def _indices(self, table: Any) -> str:
        return _joined([self._row, *["%first"] * (table.rank - 1)])


def _row_types(table: Any) -> tuple[Any, Any]:
    """The types of a row of a table, with its first axis and without."""
    shape = list(table.shape)[1:]
    return tuple(ir.RankedTensorType.get(each, table.element_type) for each in ([1, *shape], shape))


def _table_type(rows: int, row: Any) -> Any:
    """The type of a table with rows like a fake tensor."""
    kind = tensor_type(row)
    return ir.Type.parse(f"tensor<{'x'.join(map(str, (rows, *kind.shape, kind.dtype)))}>")


def _names(name: str, values: Sequence[Any]) -> list[str]:
    return [f"%{name}{at}" for at in range(len(values))]


def _joined(parts: Iterable[Any]) -> str:
    return ", ".join(map(str, parts))


def _zero(kind: Any) -> str:
    element = str(kind.element_type)
    return "false" if element == "i1" else "0" if element.startswith("i") else "0.0"
