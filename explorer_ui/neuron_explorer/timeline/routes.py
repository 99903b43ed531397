"""The binary and JSON routes from which the timeline engine takes its data: `/data/PROFILE/...`.

Who may ask is decided for the whole server (`neuron_tools.web_access`). All times are ns from the origin that
`tracks` names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa
from flask import Blueprint, Flask, Response, jsonify, request

from neuron_explorer.timeline.counter_tiles import counter_tiles
from neuron_explorer.timeline.parameters import Parameters
from neuron_explorer.timeline.span_tiles import span_tiles
from neuron_explorer.timeline.track_list import origin_ns, track_list
from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.reader import Profile

ARROW = "application/vnd.apache.arrow.stream"


class Library(Protocol):
    """Where the routes find profiles."""

    def get(self, wanted: str, /) -> Profile:
        """The open profile of an id."""


def register(server: Flask, library: Library) -> None:
    """Add the routes to a server."""
    data = Blueprint("timeline_data", __name__, url_prefix="/data/<profile_id>")

    def answer(name: str, make: Callable[[Profile, Parameters], Any]) -> None:
        def respond(profile_id: str) -> Response:
            return _encoded(make(library.get(profile_id), Parameters(request.args)))

        data.add_url_rule(f"/{name}", name, respond)

    def tracks(profile_id: str) -> Response:
        return jsonify(track_list(library.get(profile_id), profile_id))

    data.add_url_rule("/tracks", "tracks", tracks)
    for name, make in _ANSWERS.items():
        answer(name, make)
    data.register_error_handler(NeuronToolsError, _refusal)
    server.register_blueprint(data)


def _timeline(profile: Profile, parameters: Parameters) -> pa.Table:
    places = parameters.places("tracks", len(profile.tracks()))
    return span_tiles(profile, places, parameters.tile_range(), origin_ns(profile))


def _counters(profile: Profile, parameters: Parameters) -> pa.Table:
    places = parameters.places("tracks", len(profile.tracks()))
    return counter_tiles(profile, places, parameters.tile_range(), origin_ns(profile))


_ANSWERS: dict[str, Callable[[Profile, Parameters], Any]] = {"timeline": _timeline, "counters": _counters}


def _encoded(content: Any) -> Response:
    """Tables as Arrow IPC streams, everything else as JSON."""
    if not isinstance(content, pa.Table):
        return jsonify(content)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, content.schema) as stream:
        for batch in content.to_batches():
            stream.write_batch(batch)
    return Response(sink.getvalue().to_pybytes(), mimetype=ARROW)


def _refusal(error: Exception) -> tuple[Response, int]:
    is_unknown = type(error).__name__ in ("UnknownProfileError", "NotAProfileError")
    return Response(f"{error}\n", mimetype="text/plain"), 404 if is_unknown else 400
