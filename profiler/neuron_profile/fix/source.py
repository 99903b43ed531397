"""A Python file as LibCST sees it: statements by line, loops around them, edits that keep its formatting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import TypeVar

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.fix.proposal import Edit, Request

Change = Callable[[cst.CSTNode], "cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel"]
Node = TypeVar("Node", bound=cst.CSTNode)
LOOPS = (cst.For, cst.While)
SCOPES = (cst.FunctionDef, cst.ClassDef, cst.Lambda)


class Source:
    """The syntax tree of a text.

    Raises:
        libcst.ParserSyntaxError: It is no Python.
    """

    def __init__(self, text: str) -> None:
        wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        self.module = wrapper.module
        self._positions = wrapper.resolve(PositionProvider)
        self._parents = wrapper.resolve(ParentNodeProvider)

    def lines(self, node: cst.CSTNode) -> tuple[int, int]:
        """First and last line of a node."""
        place = self._positions[node]
        return place.start.line, place.end.line

    def nodes(self, kind: type[Node], inside: cst.CSTNode | None = None) -> Iterator[Node]:
        """All nodes of a kind, in order of the text."""
        waiting: list[cst.CSTNode] = [inside or self.module]
        while waiting:
            node = waiting.pop()
            if isinstance(node, kind):
                yield node
            waiting.extend(reversed(node.children))

    def statement_at(self, line: int) -> cst.SimpleStatementLine | None:
        """The statement that stands on a line; of a compound one, that of its body."""
        found = [
            node
            for node in self.nodes(cst.SimpleStatementLine)
            if self.lines(node)[0] <= line <= self.lines(node)[1]
        ]
        return found[-1] if found else None

    def lone_statement_at(self, line: int) -> cst.SimpleStatementLine | None:
        """The same; None where other statements stand on its line."""
        found = self.statement_at(line)
        return found if found is not None and len(found.body) == 1 else None

    def only_computes(self, function: cst.FunctionDef, unfit: Set[str]) -> bool:
        """Whether a function neither calls or reads `unfit` methods and attributes nor prints."""
        methods = {node.attr.value for node in self.nodes(cst.Attribute, function)}
        return methods.isdisjoint(unfit) and not self.names("print", function)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """What a node stands in."""
        found: cst.CSTNode | None = self._parents.get(node)
        return found

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """What a node stands in, from the inside."""
        above = self.parent(node)
        while above is not None:
            yield above
            above = self.parent(above)

    def outermost_loop(self, node: cst.CSTNode) -> cst.For | cst.While | None:
        """The outermost loop around a node within its function."""
        found = None
        for above in self.ancestors(node):
            if isinstance(above, SCOPES):
                break
            if isinstance(above, LOOPS):
                found = above
        return found

    def scope(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The innermost function or class around a node."""
        return next((above for above in self.ancestors(node) if isinstance(above, SCOPES)), None)

    def names(self, name: str, inside: cst.CSTNode) -> int:
        """How often a name stands in a node."""
        return sum(node.value == name for node in self.nodes(cst.Name, inside))

    def imports(self, package: str) -> bool:
        """Whether the file has `import PACKAGE`."""
        return any(
            alias.asname is None and dotted(alias.name) == package
            for node in self.nodes(cst.Import)
            for alias in node.names
        )

    def edited(self, changes: Mapping[cst.CSTNode, Change]) -> str:
        """The text with nodes replaced."""
        return str(self.module.visit(_Changes(changes)).code)


def of_statement(
    edit: Callable[[Source, cst.SimpleStatementLine, Finding], Edit | None],
) -> Callable[[Request], Edit | None]:
    """The editor that changes the finding's statement; it derives nothing where others stand on its line."""

    def of_request(request: Request) -> Edit | None:
        source = Source(request.text)
        line = source.lone_statement_at(request.finding.place.line)
        return None if line is None else edit(source, line, request.finding)

    return of_request


class _Changes(cst.CSTTransformer):
    def __init__(self, changes: Mapping[cst.CSTNode, Change]) -> None:
        super().__init__()
        self._changes = changes

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> object:
        change = self._changes.get(original_node)
        return super().on_leave(original_node, updated_node) if change is None else change(updated_node)


def statement(text: str) -> cst.BaseStatement:
    """A statement of a line."""
    return cst.ensure_type(cst.parse_statement(text), cst.SimpleStatementLine)


def followed_by(*added: cst.BaseStatement) -> Change:
    """Keeps a statement and puts others behind it."""
    return lambda node: cst.FlattenSentinel([node, *added])


def preceded_by(*added: cst.BaseStatement) -> Callable[[cst.CSTNode], cst.FlattenSentinel[cst.CSTNode]]:
    """Keeps a statement and puts others before it; its comments stay above all."""

    def change(node: cst.CSTNode) -> cst.FlattenSentinel[cst.CSTNode]:
        kept = cst.ensure_type(node, cst.BaseCompoundStatement)
        first = added[0].with_changes(leading_lines=kept.leading_lines)
        return cst.FlattenSentinel([first, *added[1:], kept.with_changes(leading_lines=())])

    return change


def between(before: cst.BaseStatement, after: cst.BaseStatement) -> Change:
    """Puts a compound statement between two others; its comments stay above all."""
    precede = preceded_by(before)

    def change(node: cst.CSTNode) -> cst.FlattenSentinel[cst.CSTNode]:
        return cst.FlattenSentinel([*precede(node), after])

    return change


def removed(_: cst.CSTNode) -> cst.RemovalSentinel:
    """Takes a statement out."""
    return cst.RemoveFromParent()


def replaced_by(node: cst.CSTNode) -> Change:
    """Puts another node in its place."""
    return lambda _: node


def dotted(node: cst.CSTNode) -> str:
    """A dotted name as text; "" of anything else."""
    if isinstance(node, cst.Name):
        return str(node.value)
    if isinstance(node, cst.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr.value}" if before else ""
    return ""


def with_argument(call: cst.Call, name: str, value: cst.BaseExpression) -> cst.Call:
    """The call with a keyword argument set to a value, whatever it was before."""
    kept = [arg for arg in call.args if arg is not keyword(call, (name,))]
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return call.with_changes(args=[*kept, cst.Arg(value, keyword=cst.Name(name), equal=equal)])


def keyword(call: cst.Call, names: Sequence[str]) -> cst.Arg | None:
    """The first of a call's keyword arguments with one of these names."""
    return next((arg for arg in call.args if arg.keyword is not None and arg.keyword.value in names), None)
