"""The workspace's frame and its panels, as the browser gets them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from neuron_explorer.address import Address
from neuron_explorer.analyses import Analyses
from neuron_explorer.app import make_app, render
from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_explorer.page import Site, View
from neuron_explorer.pages import pages
from neuron_explorer.workspace.arrangements import ARRANGEMENTS, arrangement_named
from neuron_explorer.workspace.page import draw_panel, workspace_page
from neuron_explorer.workspace.panels import PANELS, panel_named


@pytest.fixture
def view(make_profile, monkeypatch) -> Iterator[View]:
    monkeypatch.setattr("neuron_explorer.sections.PATIENCE_S", 300.0)
    path = make_profile()
    with ProfileLibrary([path]) as library:
        yield View(library, Analyses(library), Address("/workspace", profile_id(path)))


def _text(shown: Any) -> str:
    return json.dumps(shown, default=lambda part: part.to_plotly_json())


def test_every_panel_of_an_arrangement_is_one_that_there_is() -> None:
    known = {panel.name for panel in PANELS} - {"headline"}
    for arrangement in ARRANGEMENTS:
        named = re.findall(r"[a-z]+", arrangement.layout)
        assert set(named) <= known
        assert len(named) == len(set(named))
    assert arrangement_named("nothing") is ARRANGEMENTS[0]


def test_panels_show_pages_that_there_are() -> None:
    paths = {page.path for page in pages()}
    assert {panel.path for panel in PANELS if panel.path} <= paths


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_a_panel_is_drawn_and_its_links_stay_in_the_workspace(view: View, panel: Any) -> None:
    here = replace(view, address=replace(view.address, parameters={"panel": panel.name}))
    shown = _text(draw_panel(panel, here))
    assert '"className": "state error"' not in shown
    assert '"children": ' in shown or "NeuronTimeline" in shown


def test_what_the_costliest_line_became_is_shown_until_one_is_chosen(view: View) -> None:
    panel = panel_named("compiled")
    assert panel is not None
    shown = _text(
        draw_panel(panel, replace(view, address=replace(view.address, parameters={"panel": "compiled"})))
    )
    assert "side by side" in shown
    assert "No line is chosen" not in shown


def test_the_frame_holds_every_panel_and_stays_while_the_address_changes(view: View) -> None:
    frame = _text(workspace_page(view))
    if "is not built" in frame:
        pytest.skip("The front end is not built.")
    assert all(f'"panel-{panel.name}"' in frame for panel in PANELS)
    first = render(view)
    again = render(view, shown=first[-1])
    assert first[-1] == again[-1]
    assert type(again[0]).__name__ == "NoUpdate"


@pytest.mark.parametrize(
    ("parameters", "is_there"),
    [
        ({}, True),
        ({"a": "kernel"}, True),
        ({"a": "compare"}, False),
        ({"compare": "x"}, False),
        ({"l": "source"}, False),
    ],
)
def test_the_timeline_comes_with_the_page_where_nothing_else_is_asked_for(
    view: View, parameters: dict[str, str], is_there: bool
) -> None:
    frame = _text(workspace_page(replace(view, address=replace(view.address, parameters=parameters))))
    if "is not built" in frame:
        pytest.skip("The front end is not built.")
    assert ('"NeuronTimeline"' in frame) is is_there


def test_the_workspaces_script_is_loaded_by_the_workspace_alone(view: View) -> None:
    page = workspace_page(view)
    if "is not built" in _text(page):
        pytest.skip("The front end is not built.")
    (script,) = re.findall(r'"script": "([^"]+)"', _text(page))
    client = make_app(Site(view.library, view.analyses, view.tasks, view.store)).server.test_client()
    begun = client.get("/").get_data(as_text=True)
    assert "neuron_timeline" in begun
    assert "neuron_workspace" not in begun
    answer = client.get(script)
    assert answer.status_code == 200
    assert "max-age=31536000" in answer.headers["Cache-Control"]


def test_the_headline_tells_the_finding_that_is_asked_for(view: View) -> None:
    panel = panel_named("headline")
    assert panel is not None
    shown = _text(
        draw_panel(panel, replace(view, address=replace(view.address, parameters={"panel": "headline"})))
    )
    assert "headline" in shown
