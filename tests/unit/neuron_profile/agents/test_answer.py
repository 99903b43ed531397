from __future__ import annotations

import json
import math

import pytest

from neuron_profile.agents.answer import LONGEST_TEXT, as_text, plain, share


def test_next_steps_stand_last():
    assert as_text({"rows": [1]}, ["summary()"]) == '{"rows":[1],"next":["summary()"]}'


@pytest.mark.parametrize("text", ["\x1b[31m", "\u202e", "\u201c", "\x00", "line\nbreak"])
def test_nothing_but_printable_ascii_is_sent(text):
    sent = as_text({"name": text})
    assert sent.isascii()
    assert sent.isprintable()
    assert json.loads(sent) == {"name": text}


def test_long_texts_are_cut_and_say_so():
    cut = plain("x" * (LONGEST_TEXT + 7))
    assert cut.endswith("... (7 more characters)")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null(value):
    assert as_text({"value": value}) == '{"value":null}'


def test_whole_numbers_lose_their_point():
    assert plain(3.0) == 3
    assert plain((1.5, {"a": 2})) == [1.5, {"a": 2}]


def test_a_part_of_nothing_is_nothing():
    assert share(3, 0) == 0.0
    assert share(1, 3) == 0.3333
