"""An answer to an agent: one short JSON object whose texts are data, with what to ask next.

A profile's names and source texts may come from somebody else. They are values of the object only, cut to a
length, and all but printable ASCII is escaped: no control character, no direction mark and no look-alike of a
quotation mark reaches the agent as such.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

Json = dict[str, Any]

LONGEST_TEXT = 400
SHARE_DIGITS = 4
NEXT = "next"


def as_text(answer: Mapping[str, Any], following: Sequence[str] = ()) -> str:
    """The answer as JSON.

    Args:
        following: What one would ask next, a call or a sentence each.
    """
    content = {**answer, NEXT: list(following)} if following else answer
    return json.dumps(plain(content), separators=(",", ":"), allow_nan=False)


def plain(value: Any) -> Any:
    """A value as JSON has it: long texts cut, numbers that are none as null, everything else as text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, (float, Decimal)):
        return _number(float(value))
    if isinstance(value, Mapping):
        return {shortened(str(name)): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return shortened(str(value))


def shortened(text: str, most: int = LONGEST_TEXT) -> str:
    """The beginning of a long text, and how much was cut."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text) - most} more characters)"


def share(part: float, whole: float) -> float:
    """A part of a whole, 0 to 1, with four digits."""
    return round(part / whole, SHARE_DIGITS) if whole else 0.0


def _number(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
