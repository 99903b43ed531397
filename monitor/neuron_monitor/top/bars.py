"""Bars and sparklines made of characters, with a plain form for terminals that have only ASCII."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_tools.frozen import frozen


@frozen
class Glyphs:
    """Characters to draw with.

    Attributes:
        parts: A cell filled by 1/n, 2/n, ... to the whole.
        empty: A cell that is not filled.
        levels: Heights of a sparkline, lowest first.
    """

    parts: str
    empty: str
    levels: str


UNICODE = Glyphs("▏▎▍▌▋▊▉█", " ", "▁▂▃▄▅▆▇█")
ASCII = Glyphs("#", ".", "_.-=*#")


def bar(share: float, width: int, glyphs: Glyphs = UNICODE) -> str:
    """A bar of `width` cells for a share of 0 to 1; more than nothing is never drawn as nothing."""
    steps = len(glyphs.parts)
    filled = round(min(1.0, max(0.0, share)) * width * steps)
    if share > 0:
        filled = max(1, filled)
    whole, rest = divmod(filled, steps)
    text = glyphs.parts[-1] * whole + (glyphs.parts[rest - 1] if rest else "")
    return text + glyphs.empty * (width - len(text))


def sparkline(values: Sequence[float], width: int, highest: float, glyphs: Glyphs = UNICODE) -> str:
    """The last `width` values as heights between 0 and `highest`; short ones stand at the right."""
    shown = list(values)[-width:]
    top = len(glyphs.levels) - 1
    heights = [min(top, max(0, round(value / highest * top))) if highest > 0 else 0 for value in shown]
    return "".join(glyphs.levels[height] for height in heights).rjust(width)
