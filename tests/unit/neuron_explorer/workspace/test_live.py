"""What a page that follows a capture hears of it."""

from __future__ import annotations

import json

import pytest
from flask import Flask

from neuron_explorer.analyses import Analyses
from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_explorer.page import Site
from neuron_explorer.tasks import Tasks
from neuron_explorer.user_store import UserStore
from neuron_explorer.workspace.routes import register


@pytest.fixture
def asked(make_profile, tmp_path, monkeypatch):
    """The profile's folder, and what is answered about it."""
    monkeypatch.setattr("neuron_explorer.library.GROWTH_S", 0.0)
    path = make_profile()
    with ProfileLibrary([path]) as library:
        server = Flask("test")
        register(server, Site(library, Analyses(library), Tasks(), UserStore(tmp_path / "store")))
        client = server.test_client()
        yield path, lambda wanted=profile_id(path): client.get(f"/workspace/live/{wanted}")


def test_a_profile_is_told_to_be_complete_once_it_is(asked):
    path, ask = asked
    manifest = path / "profile.json"
    said = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**said, "complete": False}))
    assert ask().get_json()["complete"] is False
    manifest.write_text(json.dumps({**said, "complete": True, "again": 1}))
    assert ask().get_json()["complete"] is True
    assert ask().get_json()["newest"] is None


def test_a_profile_that_is_not_there_is_refused_in_a_sentence(asked):
    _, ask = asked
    assert (ask("nothing").status_code, ask("nothing").text.count("\n")) == (400, 1)
