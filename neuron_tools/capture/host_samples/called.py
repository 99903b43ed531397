"""What a sampled line was calling, from its source."""

from __future__ import annotations

import ast
import linecache
import re

from neuron_tools.capture.host_samples.reading import SampledStack

_CALL = re.compile(r"([A-Za-z_][\w.]*)\s*\(")


def called(stack: SampledStack) -> str:
    """The called expression of the innermost frame: "self.lock.acquire", "print"; "" where it calls nothing.

    Python below 3.11 does not say which of a line's calls it is: the first.
    """
    if not stack.frames:
        return ""
    first, last, left, right = stack.span
    if not first:
        found = _CALL.search(linecache.getline(stack.frames[0].file, stack.frames[0].line))
        return found[1] if found else ""
    lines = [linecache.getline(stack.frames[0].file, number) for number in range(first, last + 1)]
    if not all(lines):
        return ""
    # Columns count bytes of UTF-8.
    parts = [line.encode() for line in lines]
    parts[-1] = parts[-1][:right]
    parts[0] = parts[0][left:]
    return _function_of(b"".join(parts).decode(errors="replace"))


def _function_of(text: str) -> str:
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return ""
    return ast.unparse(expression.func) if isinstance(expression, ast.Call) else ""
