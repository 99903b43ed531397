"""JSON text as Python values whose texts can be written anywhere."""

from __future__ import annotations

import json
import re
from typing import Any

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def loads(text: str | bytes) -> Any:
    """The value of JSON text; half a character (a lone surrogate), which UTF-8 does not have, reads "?".

    Raises:
        ValueError: The text is not valid JSON.
    """
    spelled = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    value = json.loads(spelled, strict=False)
    return _sound(value) if _SURROGATE.search(spelled) else value


def whole_number(value: Any, limit: int) -> int | None:
    """A whole number, which true and false are to Python, from 0 to below a limit; None for anything else."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < limit else None


def _sound(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_sound(part) for part in value]
    if isinstance(value, dict):
        return {_sound(key): _sound(part) for key, part in value.items()}
    return value
