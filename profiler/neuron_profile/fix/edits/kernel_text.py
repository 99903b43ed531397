"""What the text of an NKI kernel says: its loops over tiles, and where a tile is made and written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import libcst as cst

from neuron_profile.fix.source import Source, dotted, keyword

Loop: TypeAlias = cst.For | cst.While


def is_call(line: cst.SimpleStatementLine, name: str) -> bool:
    """Whether a statement is a call of a function of that name and nothing else."""
    small = line.body[0]
    call = small.value if isinstance(small, cst.Expr) else None
    return isinstance(call, cst.Call) and dotted(call.func).rpartition(".")[2] == name


def kernel_loop(source: Source, line: cst.SimpleStatementLine) -> Loop | None:
    """The loop that a statement stands directly in, where that is the only one around it."""
    loop = source.outermost_loop(line)
    return loop if loop is not None and source.parent(source.parent(line) or loop) is loop else None


def makes_tile(source: Source, inside: cst.CSTNode, name: str) -> cst.SimpleStatementLine | None:
    """The only statement `NAME = nl.ndarray(...)` inside a node that gives a name its value."""
    found = [line for line in source.nodes(cst.SimpleStatementLine, inside) if name in _assigned(line)]
    if len(found) != 1 or len(found[0].body) != 1:
        return None
    value = cst.ensure_type(found[0].body[0], cst.Assign).value
    return found[0] if isinstance(value, cst.Call) and dotted(value.func).endswith("ndarray") else None


def _assigned(line: cst.SimpleStatementLine) -> set[str]:
    return {
        dotted(target.target)
        for small in line.body
        if isinstance(small, cst.Assign)
        for target in small.targets
    }


def writes(source: Source, inside: cst.CSTNode, name: str) -> Iterator[cst.Call]:
    """Calls that write a tile, or a part of it."""
    for call in source.nodes(cst.Call, inside):
        for arg in call.args:
            is_output = arg.keyword is not None and arg.keyword.value in ("dst", "reduce_res")
            if is_output and source.names(name, arg.value):
                yield call


def destination(call: cst.Call) -> str:
    """The tile that a call writes as a whole; "" where it writes a part, or what is no plain name."""
    arg = keyword(call, ("dst",))
    return dotted(arg.value) if arg is not None else ""
