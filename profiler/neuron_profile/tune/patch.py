"""The best candidate as a patch of the kernel's file: other values in the same text."""

from __future__ import annotations

import ast
import difflib
import json
import os
from pathlib import Path

from neuron_profile.tune.measurement import Candidate
from neuron_profile.tune.space import find_function, value_of


def patched_text(candidate: Candidate) -> str:
    """The file's text with the candidate's values; everything else, comments too, as it stands."""
    text = candidate.path.read_text()
    tree = ast.parse(text)
    function = find_function(tree, candidate)
    edits = []
    for name, value in candidate.parameters.items():
        node = value_of(tree, function, name)
        if node is not None and ast.unparse(node) != repr(value):
            written = json.dumps(value) if isinstance(value, str) else repr(value)
            edits.append((*_span(text, node), written))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def as_patch(path: Path, new: str) -> str:
    """A unified diff that `git apply` and `patch -p1` take; "" where nothing changes."""
    name = path.name if os.path.relpath(path).startswith("..") else os.path.relpath(path)
    old = path.read_text()
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return "".join(lines)


def _span(text: str, node: ast.expr) -> tuple[int, int]:
    """First character of a node, and the one behind its last."""
    lines = text.splitlines(keepends=True)

    def position(line: int, offset_bytes: int) -> int:
        within = lines[line - 1].encode()[:offset_bytes].decode()
        return sum(map(len, lines[: line - 1])) + len(within)

    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return position(node.lineno, node.col_offset), position(node.end_lineno, node.end_col_offset)
