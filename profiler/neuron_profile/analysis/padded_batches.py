"""Batches whose sequences are padded: how far, at which line, and what of the device's work carries them."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence

from neuron_profile.analysis.source_frames import SourceFrame, load_frames, stack
from neuron_profile.analysis.source_lines import called_name
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile
from neuron_tools.records.capture_log import Padding

_COPIES = """
SELECT coalesce(span.process_idx, 0) AS process, span.start_ts AS start_ns,
    coalesce(own.source_file, span.source_file, '') AS file,
    coalesce(own.source_line, span.source_line, 0) AS line,
    coalesce(span.stack_frame_ids, '') AS stack, (event.extra_attributes_json->'$.padding') AS padding
FROM HostSpan span
JOIN SystemProfileEvents event ON event.name = 'nrt_tensor_write'
    AND span.start_ts = event.start_ts AND span.end_ts = event.end_ts
    AND coalesce(span.process_idx, 0) = coalesce(event.process_idx, 0)
LEFT JOIN Frontier own ON own.stack_frame_id = span.stack_frame_ids
WHERE span.kind = 'copy' AND (event.extra_attributes_json->'$.padding') IS NOT NULL
ORDER BY process, start_ns
"""
_MAKERS = frozenset({"zeros", "ones", "full", "empty", "new_zeros", "new_ones", "new_full", "new_empty"})
_PADS = frozenset({"pad", "pad_sequence"})


@frozen
class PaddedBatch:
    """A copy of padded sequences to the device.

    Attributes:
        file, line: The user's own line that copies.
        frames: Its stack, from the innermost frame.
    """

    process: int
    start_ns: int
    file: str
    line: int
    frames: tuple[SourceFrame, ...]
    padding: Padding


def padded_batches(profile: Profile) -> tuple[PaddedBatch, ...]:
    """All copies of padded sequences, process by process; none of a profile that does not tell them."""
    rows = profile.query(_COPIES).to_pylist()
    frames = load_frames(profile) if rows else {}
    return tuple(
        PaddedBatch(
            row["process"], row["start_ns"], row["file"], row["line"],
            tuple(stack(frames, row["stack"])), Padding(**json.loads(row["padding"])),
        )
        for row in rows
    )  # fmt: skip


def padding_lines(lines: Sequence[str]) -> tuple[int, ...]:
    """The lines of a file that pad sequences: those that call for it, and those that make a tensor whose rows
    are filled from their beginning."""
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    nodes = list(ast.walk(tree))
    filled = {name for node in nodes for name in _filled(node)}
    return tuple(
        sorted({node.lineno for node in nodes if isinstance(node, ast.stmt) and _pads(node, filled)})
    )


def _filled(node: ast.AST) -> Iterator[str]:
    """The name in `NAME[ROW, :END] = VALUE`."""
    for target in node.targets if isinstance(node, ast.Assign) else ():
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            places = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
            if any(isinstance(each, ast.Slice) and each.upper and not each.lower for each in places):
                yield target.value.id


def _pads(node: ast.stmt, filled: set[str]) -> bool:
    if (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and called_name(node.value) in _MAKERS
    ):
        return any(isinstance(target, ast.Name) and target.id in filled for target in node.targets)
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)) and node.value is not None:
        calls = [each for each in ast.walk(node.value) if isinstance(each, ast.Call)]
        return any(called_name(call) in _PADS or _asks_for_padding(call) for call in calls)
    return False


def _asks_for_padding(call: ast.Call) -> bool:
    """Whether a tokenizer is called so that it pads: `padding="max_length"`, `padding=True`."""
    values = [each.value for each in call.keywords if each.arg == "padding"]
    return any(isinstance(value, ast.Constant) and value.value in ("max_length", True) for value in values)
