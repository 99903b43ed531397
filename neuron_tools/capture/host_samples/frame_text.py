"""What the file of sampled stacks says of a frame."""

from __future__ import annotations

import dis
import json
from types import CodeType

Span = tuple[int, int, int, int]


def describe_frame(code: CodeType, offset: int, span: Span, is_innermost: bool) -> str:
    """JSON of a frame: [file, line, function]; of the innermost one, what it evaluates there, as members.

    Args:
        code: Of its function.
        offset: Of its instruction, in bytes; negative where it has none.
        span: First and last line and column of what it evaluates; 0 and below where Python does not say.
        is_innermost: Whether its members are wanted: `span`, and `op`, the instruction.
    """
    if is_innermost:
        known = [max(number, 0) for number in span]
        return f'"span":{known},"op":{json.dumps(_operation(code, offset))}'
    return json.dumps((code.co_filename, max(span[0], 0), _function(code)))


def _function(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


def _operation(code: CodeType, offset: int) -> str:
    return dis.opname[code.co_code[offset]] if 0 <= offset < len(code.co_code) else ""
