"""The pages of analyses: what they show of a profile, and what they say where it has nothing for them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from plotly.utils import PlotlyJSONEncoder

import neuron_tools
from neuron_explorer.app import page
from neuron_explorer.content import read_content
from neuron_tools.simulator.program import DType
from tests.unit.neuron_profile.small_capture import Step, open_capture, products, program


def text(components: Any) -> str:
    """All that a page would show, as JSON."""
    return json.dumps([component.to_plotly_json() for component in components], cls=PlotlyJSONEncoder)


@pytest.fixture
def capture(tmp_path):
    fp32 = program([("matmul", 5)], products(400, DType.F32))
    with open_capture(tmp_path, [fp32], [Step(0, wait_line=9)] * 5) as profile:
        yield read_content(profile)


@pytest.fixture
def tiny(make_profile):
    with neuron_tools.open_profile(make_profile()) as profile:
        yield read_content(profile)


def test_advice_shows_findings_with_gain_and_line(capture):
    shown = text(page(capture, "/advice", ""))
    assert "Matrix products in fp32" in shown
    assert "saves" in shown
    assert "train.py:5" in shown


def test_time_divides_each_engine(tiny):
    shown = text(page(tiny, "/time", ""))
    assert "Tensor (process 0, core 0)" in shown
    assert "Waiting for the host" in shown
    assert "80 ns" in shown


@pytest.mark.parametrize("address", ["/advice", "/time", "/roofline"])
def test_an_empty_profile_says_what_is_missing(address, make_profile):
    with neuron_tools.open_profile(make_profile("empty.nprof", {})) as profile:
        shown = text(page(read_content(profile), address, ""))
    assert "This profile has no" in shown or "Nothing was found" in shown


def test_an_unknown_level_of_the_roofline_is_the_first(tiny, make_profile, tiny_tables):
    assert text(page(tiny, "/roofline", "?level=<script>")) == text(page(tiny, "/roofline", ""))
