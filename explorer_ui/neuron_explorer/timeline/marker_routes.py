"""The route of saved markers, `/data/PROFILE/markers`: the user's sets, and one more by POST."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Flask, Response, jsonify, request

from neuron_explorer.marker_sets import MarkerError, MarkerSet, parsed_markers
from neuron_explorer.page import Site
from neuron_explorer.timeline.routes import refusal
from neuron_tools.errors import NeuronToolsError

LONGEST_BODY = 1 << 18


def register(server: Flask, site: Site) -> None:
    """Add the route to a server."""
    blueprint = Blueprint("timeline_markers", __name__, url_prefix="/data/<profile_id>")

    def told(profile_id: str) -> Response:
        site.library.get(profile_id)
        return jsonify(_answer(site, profile_id))

    def save(profile_id: str) -> Response:
        site.library.get(profile_id)
        name = site.library.entry(profile_id).name
        asked = _asked()
        site.store.save_markers(profile_id, name, asked["name"], parsed_markers(asked["markers"]))
        return jsonify(_answer(site, profile_id))

    blueprint.add_url_rule("/markers", "markers", told)
    blueprint.add_url_rule("/markers", "save_markers", save, methods=["POST"])
    blueprint.register_error_handler(NeuronToolsError, refusal)
    server.register_blueprint(blueprint)


def _asked() -> dict[str, Any]:
    if (request.content_length or 0) > LONGEST_BODY:
        raise MarkerError("These are too many markers: save fewer.")
    asked = request.get_json(silent=True)
    if not isinstance(asked, dict) or not isinstance(asked.get("name"), str):
        raise MarkerError("Send markers with a name to save them.")
    return {"name": asked["name"], "markers": asked.get("markers")}


def _answer(site: Site, profile_id: str) -> dict[str, Any]:
    """The profile's own sets, then those of others; whether more may be saved."""
    sets = sorted(site.store.marker_sets(), key=lambda one: (one.profile_id != profile_id, one.name))
    return {"sets": [_plain(one, profile_id) for one in sets], "canSave": not site.sharing.is_read_only}


def _plain(one: MarkerSet, profile_id: str) -> dict[str, Any]:
    return {
        "name": one.name,
        "profile": one.profile_name,
        "isOwn": one.profile_id == profile_id,
        "markers": [marker.plain for marker in one.markers],
    }
