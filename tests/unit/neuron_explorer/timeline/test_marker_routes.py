"""Saved markers: kept by profile and name, offered to every profile, refused where they make no sense."""

from __future__ import annotations

import json

import pytest
from flask import Flask

from neuron_explorer.analyses import Analyses
from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_explorer.marker_sets import Marker
from neuron_explorer.page import Site
from neuron_explorer.sharing import Sharing
from neuron_explorer.tasks import Tasks
from neuron_explorer.timeline.marker_routes import register
from neuron_explorer.user_store import FILE_NAME, StoreError, UserStore
from tests.unit.neuron_explorer.timeline.small_profile import write_small_profile

MARKERS = [{"timeNs": 800, "text": "backward"}, {"timeNs": 200.5, "text": ""}]


@pytest.fixture
def served(tmp_path):
    paths = [write_small_profile(tmp_path / name) for name in ("a.nprof", "b.nprof")]
    store = UserStore(tmp_path / "store")
    with ProfileLibrary(paths) as library:
        server = Flask("test")
        register(server, Site(library, Analyses(library), Tasks(), store))
        yield server.test_client(), [f"/data/{profile_id(path)}/markers" for path in paths], store


def test_saved_markers_are_offered_to_every_profile_their_own_first(served):
    client, (here, there), _ = served
    client.post(there, json={"name": "base", "markers": MARKERS})
    saved = client.post(here, json={"name": " mine ", "markers": MARKERS}).get_json()
    listed = client.get(here).get_json()

    in_order = [{"timeNs": 200.5, "text": ""}, {"timeNs": 800, "text": "backward"}]
    assert saved == listed
    assert listed == {
        "canSave": True,
        "sets": [
            {"name": "mine", "profile": "a.nprof", "isOwn": True, "markers": in_order},
            {"name": "base", "profile": "b.nprof", "isOwn": False, "markers": in_order},
        ],
    }


def test_a_name_without_markers_is_forgotten_and_one_with_others_replaced(served):
    client, (here, _), store = served
    client.post(here, json={"name": "mine", "markers": MARKERS})
    client.post(here, json={"name": "mine", "markers": MARKERS[:1]})
    assert [one.markers for one in store.marker_sets()] == [(Marker(800, "backward"),)]
    assert client.post(here, json={"name": "mine", "markers": []}).get_json()["sets"] == []


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"name": " ", "markers": MARKERS}, "Give the markers a name"),
        ({"markers": MARKERS}, "Send markers with a name"),
        ([], "Send markers with a name"),
        ({"name": "x", "markers": "all"}, "Save a list of at most"),
        ({"name": "x", "markers": [{"timeNs": "5", "text": ""}]}, "A marker has a time"),
        ({"name": "x", "markers": [{"timeNs": True, "text": ""}]}, "A marker has a time"),
        ({"name": "x", "markers": [{"timeNs": 1e300, "text": ""}]}, "A marker has a time"),
        ({"name": "x", "markers": [{"timeNs": 1, "text": ""}] * 501}, "at most 500"),
    ],
)
def test_what_are_no_markers_is_refused_in_a_sentence(served, asked, sentence):
    client, (here, _), store = served
    answer = client.post(here, json=asked)
    assert (answer.status_code, sentence in answer.text) == (400, True), answer.text
    assert store.marker_sets() == ()


def test_markers_of_a_profile_that_is_not_there_are_refused(served):
    client, _, _ = served
    assert client.get("/data/0000/markers").status_code == 404
    assert client.post("/data/0000/markers", json={"name": "x", "markers": MARKERS}).status_code == 404


def test_where_nothing_is_remembered_nothing_may_be_saved(tmp_path):
    path = write_small_profile(tmp_path / "a.nprof")
    with ProfileLibrary([path]) as library:
        server, sharing = Flask("test"), Sharing(is_read_only=True)
        register(server, Site(library, Analyses(library), Tasks(), UserStore(tmp_path), "", sharing))
        answer = server.test_client().get(f"/data/{profile_id(path)}/markers")
    assert answer.get_json() == {"sets": [], "canSave": False}


def test_a_damaged_store_has_the_markers_that_make_sense(tmp_path):
    kept = {"p": {"profile": "a", "sets": {"x": [{"timeNs": 5, "text": "n"}, 7]}}, "q": 3, "r": {"sets": []}}
    (tmp_path / FILE_NAME).write_text(json.dumps({"markers": kept}))
    (found,) = UserStore(tmp_path).marker_sets()
    assert (found.profile_id, found.name, found.markers) == ("p", "x", (Marker(5, "n"),))


def test_too_many_sets_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("neuron_explorer.user_store.MOST_MARKER_SETS", 1)
    store = UserStore(tmp_path)
    store.save_markers("p", "a", "one", [Marker(1, "")])
    store.save_markers("p", "a", "one", [Marker(2, "")])
    with pytest.raises(StoreError, match="At most 1 sets"):
        store.save_markers("p", "a", "two", [Marker(1, "")])
