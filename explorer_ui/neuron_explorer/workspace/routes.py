"""The workspace's routes, `/workspace/related/PROFILE?sel=operation:aten::mm` and `/workspace/live/PROFILE`.

The first tells what belongs to a selection, the second what a capture has written by now.
"""

from __future__ import annotations

from flask import Flask, Response, jsonify, request

from neuron_explorer.page import Site
from neuron_explorer.workspace.live import live_answer
from neuron_explorer.workspace.related import related_answer
from neuron_tools.errors import NeuronToolsError


def register(server: Flask, site: Site) -> None:
    """Put the route on a server."""

    def related(profile_id: str) -> Response:
        view = site.view("/workspace", f"?{request.query_string.decode()}&profile={profile_id}")
        try:
            return jsonify(related_answer(view))
        except NeuronToolsError as error:
            return Response(f"{error}\n", status=400, mimetype="text/plain")

    def live(profile_id: str) -> Response:
        try:
            return jsonify(live_answer(site.view("/workspace", f"?profile={profile_id}&scope=all")))
        except NeuronToolsError as error:
            return Response(f"{error}\n", status=400, mimetype="text/plain")

    server.add_url_rule("/workspace/live/<profile_id>", "workspace_live", live)
    server.add_url_rule("/workspace/related/<profile_id>", "workspace_related", related)
