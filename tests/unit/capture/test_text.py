import pytest
from hypothesis import given, strategies as st

from neuron_tools.capture.text import storable


@given(st.text())
def test_what_utf8_can_hold_stays_as_it_is(text):
    assert storable(text) == text


@given(st.text(st.characters(codec=None, categories=["Cs", "Ll"])))
def test_any_text_can_be_written(text):
    assert len(storable(text).encode("utf-8")) >= len(text)


def test_what_utf8_cannot_hold_is_spelled_out():
    assert storable("caf\udce9.py") == "caf\\udce9.py"


def test_what_is_no_text_is_refused():
    with pytest.raises(TypeError):
        storable(5)
