"""A part of a model that nobody trains is said to need no gradients, where it is made."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from os.path import commonpath

import libcst as cst

from neuron_profile.analysis.trained_modules import classes_of, trained_modules
from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import LOOPS, SCOPES, Source, dotted, followed_by, statement

TITLE = "Compute no gradients of what is not trained"


def edit(request: Request) -> Edit | None:
    """Puts `MODULE.requires_grad_(False)` behind the only line that makes the module."""
    source = Source(request.text)
    classes = dict(classes_of(ast.walk(ast.parse(request.text))))
    trained = trained_modules(request.text.splitlines())
    changes = {}
    for path in _outermost(request.finding.evidence.get("modules", ())):
        _, root, *parts = path.split("/")
        names = [name for name, made in classes.items() if made == root]
        lines = list(_made(source, names[0])) if len(names) == 1 else []
        if len(lines) != 1 or not all(map(str.isidentifier, parts)) or _holds(path, trained):
            return None
        changes[lines[0]] = followed_by(statement(".".join([names[0], *parts]) + ".requires_grad_(False)"))
    return Edit(TITLE, source.edited(changes), 0.0) if changes else None


def _outermost(modules: Sequence[str]) -> Iterator[str]:
    """What the modules of each root have in common, down to the last that is an attribute."""
    for root in dict.fromkeys(module.split("/")[1] for module in modules):
        path = commonpath([module for module in modules if module.split("/")[1] == root])
        while not path.rpartition("/")[2].isidentifier():
            path = path.rpartition("/")[0]
        yield path


def _holds(path: str, trained: frozenset[str]) -> bool:
    """Whether a module holds, or is in, one that is trained."""
    return any(f"{each}/".startswith(f"{path}/") or f"{path}/".startswith(f"{each}/") for each in trained)


def _made(source: Source, name: str) -> Iterator[cst.SimpleStatementLine]:
    """Lines at the top of the file that assign a name."""
    for line in source.nodes(cst.SimpleStatementLine):
        targets = [dotted(target.target) for small in line.body if isinstance(small, cst.Assign)
                   for target in small.targets]  # fmt: skip
        if name in targets and not any(
            isinstance(above, (*LOOPS, *SCOPES)) for above in source.ancestors(line)
        ):
            yield line
