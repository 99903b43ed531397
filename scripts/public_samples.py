"""Which of a suite's cases are run: a random sample, or a small and a middling case of each test module."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence

_NUMBER = re.compile(r"(?<![\w.])\d+|(?<=[_-])\d+")
"""Of a case's parameters; not those within words, such as a type's width."""
_SMALL, _MIDDLING = (0, 1), (4, 6)
"""Tenths of a module's cases, ordered by size, between which one case each is drawn."""


def drawn(names: Sequence[str], count: int, seed: int) -> list[str]:
    """A random sample, in the order of the draw.

    Args:
        names: All cases.
        count: Cases to draw; 0: all.
        seed: Of the draw.
    """
    if not count or len(names) <= count:
        return list(names)
    return random.Random(seed).sample(list(names), count)


def spread(names: Sequence[str], seed: int) -> list[str]:
    """A case of each test module's smallest tenth, then one of each module's middle fifth.

    Args:
        names: All cases, as pytest names them.
        seed: Of the draw.
    """
    chance = random.Random(seed)
    modules: dict[str, list[str]] = {}
    for name in names:
        modules.setdefault(name.split("::")[0], []).append(name)
    ordered = [sorted(module, key=size) for module in modules.values()]
    pairs = [[chance.choice(_part(module, tenths)) for tenths in (_SMALL, _MIDDLING)] for module in ordered]
    return list(dict.fromkeys(name for chosen in zip(*pairs) for name in chosen))


def size(name: str) -> float:
    """Logarithm of the product of the numbers among a case's parameters.

    Args:
        name: The case, as pytest names it.
    """
    parameters = name.partition("[")[2]
    return sum(math.log(max(int(number), 1)) for number in _NUMBER.findall(parameters))


def _part(names: Sequence[str], tenths: tuple[int, int]) -> Sequence[str]:
    """The names between two tenths of them all, at least one."""
    first, last = (len(names) * tenth // 10 for tenth in tenths)
    return names[first : max(last, first + 1)]
