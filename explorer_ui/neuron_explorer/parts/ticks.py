"""Ticks: how often a page asks how far work is."""

from __future__ import annotations

from dash import Output


def one_question_at_a_time(interval: str) -> list[tuple[Output, int, int]]:
    """What a callback of a `dcc.Interval` gives as `running`: the next tick comes after its answer.

    Dash drops an answer that arrives after the next question, so a page whose answers take longer than a
    tick would never show one.
    """
    return [(Output(interval, "max_intervals"), 0, -1)]
