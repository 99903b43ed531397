"""torch.compile made several graphs of what could be one: values go from one to the next through HBM."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.warnings import find_warnings
from neuron_tools.records.graph_break import GRAPH_BREAK, GraphBreak


def find(context: Context) -> Iterator[Finding]:
    """One finding a line at which Dynamo ended a graph, with what it advises."""
    for warning in find_warnings(context.profile):
        broken = GraphBreak.told(warning.message) if warning.category == GRAPH_BREAK else None
        if broken is not None:
            yield _finding(broken, warning.count)


def _finding(broken: GraphBreak, count: int) -> Finding:
    own, exact = Place(broken.own_file, broken.own_line), Place(broken.file, broken.line)
    return Finding(
        "graph_breaks",
        f"torch.compile ends a graph here: {broken.reason}",
        f"{_sentence(broken.hint)}Or take the call out of the compiled function: graphs that follow one "
        "another pass values on through memory, and Python runs between them.",
        place=own,
        library_place=exact if exact != own else Place(),
        evidence={"processes": count},
    )


def _sentence(hint: str) -> str:
    """Dynamo's hint without the marks that it puts around code, which pages would show as they are."""
    plain = hint.replace("`", "").rstrip(".")
    return f"{plain}. " if plain else ""
