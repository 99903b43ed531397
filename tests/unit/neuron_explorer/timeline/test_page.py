"""The page's address becomes the component's properties; what makes no sense is left out."""

import json
from urllib.parse import urlencode

import pytest
from hypothesis import given, strategies as st

from neuron_explorer.address import Address
from neuron_explorer.timeline import page
from neuron_explorer.timeline.page import timeline_page, timeline_state

SPAN = {"track": "p0/core0/hlo", "row": 3, "startNs": 5, "durationNs": 7, "name": "dot"}


def state(**parameters):
    return timeline_state(Address.parse("/timeline", f"?{urlencode(parameters)}"))


def test_an_address_gives_the_view():
    found = state(
        profile="a", start_ns="10", end_ns="90", pinned='["p0/hlo"]', span=json.dumps(SPAN), search="x",
        highlight='{"by": "layer", "value": "/m"}', markers='[{"timeNs": 5, "text": ""}]',
        selection="[20, 30]",
    )  # fmt: skip
    assert found == {
        "range": [10, 90], "pinned": ["p0/hlo"], "span": SPAN, "search": "x",
        "highlight": {"by": "layer", "value": "/m"}, "markers": [{"timeNs": 5, "text": ""}],
        "selection": [20, 30],
    }  # fmt: skip


@pytest.mark.parametrize(
    "parameters",
    [
        {"pinned": "["},
        {"pinned": '"a"'},
        {"span": '{"track": 1}'},
        {"selection": "[1]"},
        {"markers": '[{"a": 1}]'},
    ],
)
def test_what_makes_no_sense_is_left_out(parameters):
    assert state(**parameters) == {}


@given(st.dictionaries(st.sampled_from(["pinned", "span", "markers", "selection", "highlight"]), st.text()))
def test_any_text_gives_a_state(parameters):
    json.dumps(state(**parameters))


def test_where_the_component_is_not_built_the_page_says_how(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setattr(page, "BUNDLE", tmp_path / "none.js")
    assert "scripts/front_ends.sh timeline" in str(timeline_page(None).to_plotly_json())
