"""Texts of JSON that UTF-8 does not have."""

import pytest

from neuron_tools.profile.importers.json_text import loads


@pytest.mark.parametrize("text", [r'"a\ud800b"', r'["a\uDFFFb"]', r'{"a\udabcb": {"k": ["x\udc00"]}}'])
def test_half_a_character_reads_as_a_question_mark(text):
    value = loads(text)
    str(value).encode("utf-8")
    assert "a?b" in str(value)


def test_whole_characters_stay():
    assert loads(r'["\ud83d\ude00", "ü", 1.5, true, null]') == ["\U0001f600", "ü", 1.5, True, None]
    assert loads(rb'{"a": "\u00fc"}') == {"a": "ü"}


def test_what_is_no_json_is_refused():
    with pytest.raises(ValueError, match="delimiter"):
        loads('{"a"')
