"""Where the text of a program cuts its batch into microbatches."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from neuron_profile.analysis.source_lines import called_name

_SPLITS = frozenset({"chunk", "split", "tensor_split", "microbatch", "split_args_kwargs_into_chunks"})
_MICRO = "micro"


def microbatch_line(lines: Sequence[str]) -> int | None:
    """The line that says how many microbatches there are, or else cuts the batch; None where several might.

    Args:
        lines: Of the file.
    """
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    told = sorted(set(_told(calls)))
    cut = sorted({node.lineno for node in calls if called_name(node) in _SPLITS})
    found = told or cut
    return found[0] if len(found) == 1 else None


def _told(calls: Sequence[ast.Call]) -> Iterator[int]:
    """Lines of calls that are given a number of microbatches."""
    for call in calls:
        names = [keyword.arg or "" for keyword in call.keywords]
        names += [
            each.id for each in ast.walk(call) if isinstance(each, ast.Name) and called_name(call) in _SPLITS
        ]
        if any(_MICRO in name.lower() for name in names):
            yield call.lineno
