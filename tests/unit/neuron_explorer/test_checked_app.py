"""Callbacks get values of the types that they ask for."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from neuron_explorer.checked_app import MalformedValueError, checked, fits


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, int),
        (1, float),
        (None, int | None),
        (None, None),
        ("x", str | list[str]),
        (["x"], str | list[str]),
        ({"a": {"b": 1}}, dict[str, Any]),
        ([{"a": "b"}], list[dict[str, str]]),
        (True, bool),
        ("up", Literal["up", "down"]),
        ({1: object()}, Any),
    ],
)
def test_values_of_the_type_are_taken(value: Any, hint: Any) -> None:
    assert fits(value, hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (True, int),
        (True, float),
        ("1", int),
        (1.5, int),
        (None, str),
        ([1], list[str]),
        ({"a": 1}, dict[str, str]),
        ({"a": 1}, list[str]),
        ("sideways", Literal["up", "down"]),
    ],
)
def test_others_are_refused(value: Any, hint: Any) -> None:
    assert not fits(value, hint)


def test_a_callback_is_called_only_with_what_it_asks_for() -> None:
    def greet(name: str, times: int | None) -> str:
        return name * (times or 1)

    callback = checked(greet)
    assert callback("a", 2) == "aa"
    for values in (("a",), ("a", "2"), (None, None), ("a", 1, 2)):
        with pytest.raises(MalformedValueError):
            callback(*values)
