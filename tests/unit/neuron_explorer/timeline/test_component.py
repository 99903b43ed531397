"""The component behaves like any other of Dash."""

import pytest
from dash import Dash, html

import neuron_explorer
from neuron_explorer.timeline import component
from neuron_explorer.timeline.component import BundleMissingError, NeuronTimeline


@pytest.fixture
def built(monkeypatch):
    monkeypatch.setattr(
        neuron_explorer, "_js_dist", [{"relative_package_path": "x.js", "namespace": "neuron_explorer"}]
    )


def test_it_becomes_json_with_what_was_given_only(built):
    made = NeuronTimeline(id="t", profile="abc", range=[1, 2])
    assert made.to_plotly_json() == {
        "props": {"id": "t", "profile": "abc", "range": [1, 2]},
        "type": "NeuronTimeline",
        "namespace": "neuron_timeline",
    }


def test_unknown_properties_are_refused(built):
    with pytest.raises(TypeError, match="colour"):
        NeuronTimeline(id="t", colour="red")


def test_it_stands_in_any_layout(built):
    app = Dash("another")
    app.layout = html.Div(NeuronTimeline(id="t", profile="abc"))
    assert "t" in app.layout


def test_a_missing_script_is_told(monkeypatch):
    monkeypatch.setattr(neuron_explorer, "_js_dist", [])
    with pytest.raises(BundleMissingError, match="make"):
        NeuronTimeline(id="t")


def test_every_documented_property_exists():
    documented = component.NeuronTimeline.__doc__ or ""
    for name in component.PROPERTIES:
        assert name in documented
