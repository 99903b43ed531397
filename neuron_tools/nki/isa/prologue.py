"""What every instruction function begins and ends with, written once and generated from its record.

A call resolves its operands, looks its kind up by their forms, notes one row in the trace and computes values
where the run has any. Kernels make millions of calls, so each function is straight-line code of its own,
compiled when the module is imported, instead of a loop over the record's operands.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec

from neuron_tools.backend.kinds import Kind
from neuron_tools.nki.isa.instruction import NkiInstruction
from neuron_tools.nki.isa.issue import form_of, issue, ready, require_tensors
from neuron_tools.nki.isa.table import TABLE, Derived, Instruction, Operand
from neuron_tools.nki.tracer import OF_THREAD, Tracer

Arguments = ParamSpec("Arguments")
Made = Callable[..., NkiInstruction]
_USED = (OF_THREAD, form_of, issue, ready, require_tensors, NkiInstruction)
"""What generated code names."""


def instruction(
    record: Instruction,
) -> Callable[[Callable[Arguments, None]], Callable[Arguments, NkiInstruction]]:
    """The function of an instruction, from its record and the function that computes its values.

    Args:
        record: Its row in the table, where it is kept from now on.

    Returns:
        A decorator. The decorated function has the arguments that kernels give, `name` among them;
        what it returns in its place takes the same ones, and returns the handle of the issued instruction.
    """

    def decorate(values: Callable[Arguments, None]) -> Callable[Arguments, NkiInstruction]:
        TABLE[record.name] = record
        signature = inspect.signature(values)
        space: dict[str, Any] = {}
        code = compile(_source(record, list(signature.parameters)), f"<{record.name}>", "exec")
        exec(code, globals(), space)
        made: Made = space["factory"](
            values, _kinds(record), *(derived.function for derived in record.derived)
        )
        made.__defaults__ = tuple(
            p.default for p in signature.parameters.values() if p.default is not p.empty
        )
        made.__name__, made.__qualname__ = values.__name__, values.__qualname__
        made.__doc__, made.__module__ = values.__doc__, values.__module__
        made.__signature__ = signature.replace(return_annotation="NkiInstruction")  # type: ignore[attr-defined]  # inspect reads it
        return made

    return decorate


def _kinds(record: Instruction) -> Callable[..., Kind]:
    names = [operand.name for operand in record.operands]

    def build(trace: Tracer, key: Any, forms: tuple[Any, ...], given: tuple[Any, ...]) -> Kind:
        """Make, check and keep the kind of a call that the trace has not seen."""
        arguments = dict(zip(_given(record), given))
        return trace.add_kind(key, record.kind(trace, dict(zip(names, forms)), arguments))

    return build


def _given(record: Instruction) -> list[str]:
    """Names of what the key holds besides forms: arguments, and whether operands are indexed indirectly."""
    return [*record.key, *(f"{operand.name}_gathered" for operand in record.operands if operand.gathered)]


# Source


def _source(record: Instruction, parameters: list[str]) -> str:
    """A factory of the function; what the record holds reaches it as cells."""
    functions = "".join(f", derive_{derived.name}" for derived in record.derived)
    head = ", ".join(parameters)
    last = parameters.index("name")
    passed = ", ".join([*parameters[:last], *(f"{name}={name}" for name in parameters[last + 1 :])])
    lines = [
        "trace = OF_THREAD.trace",
        "if trace is None or trace.pending is not None:",
        "    trace = ready()",
        *_resolve(record),
        *(_derive(derived) for derived in record.derived),
        *_lookup(record),
        *_record(record),
        "if name is not None:",
        "    trace.note_name(name)",
        "if trace.values:",
        f"    values({passed})",
        "return NkiInstruction(trace)",
    ]
    body = "\n".join(f"        {line}" for line in lines)
    return f"def factory(values, build{functions}):\n    def made({head}):\n{body}\n    return made\n"


def _resolve(record: Instruction) -> list[str]:
    """Bring the operands into their forms; a `try` costs nothing where they are tensors."""
    needed = [operand.name for operand in record.operands if not operand.optional]
    optional = [operand.name for operand in record.operands if operand.optional]
    return [
        "try:",
        *(line for name in needed for line in (f"    if {name}.region < 0:", f"        {name}.resolve()")),
        "except AttributeError:",
        f"    require_tensors({record.name!r}, {', '.join(f'{name}={name}' for name in needed)})",
        "    raise",
        *(f"form_{name} = form_of({name})" for name in optional),
    ]


def _derive(derived: Derived) -> str:
    condition = f"if {derived.name} is None: " if derived.only_none else ""
    return f"{condition}{derived.name} = derive_{derived.name}({', '.join(derived.sources)})"


def _form(operand: Operand) -> str:
    return f"form_{operand.name}" if operand.optional else f"{operand.name}.form"


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _lookup(record: Instruction) -> list[str]:
    forms = [_form(operand) for operand in record.operands]
    gathered = [f"{operand.name}.gather is not None" for operand in record.operands if operand.gathered]
    given = [*record.key, *gathered]
    return [
        f"key = {_tuple([repr(record.name), *forms, *given])}",
        "kind = trace.kinds.get(key)",
        "if kind is None:",
        f"    kind = build(trace, key, {_tuple(forms)}, {_tuple(given)})",
    ]


def _record(record: Instruction) -> list[str]:
    """Note the call: in place where all optional operands are left out, else in `issue`."""
    present = [operand for operand in record.operands if not operand.optional]
    optional = [operand for operand in record.operands if operand.optional]
    written = [operand for operand in present if operand.written]
    read = [operand for operand in present if not operand.written]
    slots = [f"{operand.name}.region" for operand in written] + ["-1"] * (2 - len(written))
    lines = []
    for operand in read:
        lines += [f"if not {operand.name}.storage.complete:", f"    trace.check_read({operand.name})"]
    slots += [f"{operand.name}.region" for operand in read]
    lines.append(f"trace.record(kind, {', '.join(slots)})")
    for operand in written:
        lines += [f"if not {operand.name}.storage.complete:", f"    trace.mark_written({operand.name})"]
    if not optional:
        return lines
    absent = " and ".join(f"form_{operand.name} is None" for operand in optional)
    outputs = [operand.name for operand in record.operands if operand.written]
    sources = [operand.name for operand in record.operands if not operand.written]
    passed = [outputs[0], *sources, *(f"second={name}" for name in outputs[1:])]
    return [f"if {absent}:", *(f"    {line}" for line in lines), "else:",
            f"    issue(trace, kind, {', '.join(passed)})"]  # fmt: skip
