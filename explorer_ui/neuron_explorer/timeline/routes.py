"""The binary and JSON routes from which the timeline engine takes its data: `/data/PROFILE/...`.

Who may ask is decided for the whole server (`neuron_tools.web_access`). All times are ns from the origin that
`tracks` names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa
from flask import Blueprint, Flask, Response, jsonify, request

from neuron_explorer.timeline.charged_tiles import ChargedTiles, is_charged
from neuron_explorer.timeline.counter_tiles import counter_tiles
from neuron_explorer.timeline.deltas import span_deltas
from neuron_explorer.timeline.dependencies import dependency_chain
from neuron_explorer.timeline.lit_spans import LitSpans
from neuron_explorer.timeline.operation_engines import operation_engines
from neuron_explorer.timeline.parameters import FARTHEST_NS, MOST_TRACKS, Parameters, TileRange
from neuron_explorer.timeline.range_statistics import range_names, range_statistics
from neuron_explorer.timeline.span_details import span_details
from neuron_explorer.timeline.span_groups import SpanGroups, group_names
from neuron_explorer.timeline.span_queries import range_query
from neuron_explorer.timeline.span_tiles import span_tiles
from neuron_explorer.timeline.track_list import origin_ns, track_list
from neuron_explorer.timeline.use_tiles import has_use, use_tiles
from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.track import Track

ARROW = "application/vnd.apache.arrow.stream"
MOST_ROWS = 1 << 48
MOST_HITS = 2000
FEW_PIXELS = 1024
"""Width of a small timeline: what it asks for holds what a wider one asks for."""


class Library(Protocol):
    """Where the routes find profiles."""

    def get(self, wanted: str, /) -> Profile:
        """The open profile of an id."""


def register(server: Flask, library: Library) -> None:
    """Add the routes to a server."""
    data = Blueprint("timeline_data", __name__, url_prefix="/data/<profile_id>")

    def answer(name: str, make: Callable[[Profile, Parameters], Any]) -> None:
        def respond(profile_id: str) -> Response:
            return encoded(make(library.get(profile_id), Parameters(request.args)))

        data.add_url_rule(f"/{name}", name, respond)

    def tracks(profile_id: str) -> Response:
        return jsonify(tracks_answer(library.get(profile_id), profile_id, Parameters(request.args)))

    def engines(profile_id: str) -> Response:
        return jsonify(operation_engines(library.get(profile_id)))

    def deltas(profile_id: str) -> Response:
        base = library.get(Parameters(request.args).text("base"))
        return jsonify(span_deltas(library.get(profile_id), base))

    data.add_url_rule("/tracks", "tracks", tracks)
    data.add_url_rule("/deltas", "deltas", deltas)
    data.add_url_rule("/engines", "engines", engines)
    for name, make in _ANSWERS.items():
        answer(name, make)
    data.register_error_handler(NeuronToolsError, refusal)
    server.register_blueprint(data)


def tracks_answer(profile: Profile, profile_id: str, parameters: Parameters) -> dict[str, Any]:
    """The answer to `tracks`, with what of each lies in the range `start` to `end` where one is asked for.

    Raises:
        ParameterError: The range makes no sense.
    """
    shown = parameters.time_range(origin_ns(profile)) if "start" in parameters.given else None
    return track_list(profile, profile_id, shown)


def prepare(profile: Profile, range_ns: tuple[int, int] | None) -> None:
    """Read what the first request for the operations of a profile needs.

    Args:
        range_ns: What the timeline opens with, if that is known.
    """
    tiles = range_ns and TileRange.around(*range_ns, FEW_PIXELS)
    _CHARGED.prepare(profile, tiles, origin_ns(profile))


def _timeline(profile: Profile, parameters: Parameters) -> pa.Table:
    places = _places(profile, parameters, of_counters=False)
    tiles = span_tiles(profile, places, parameters.tile_range(), _origin(profile, parameters))
    return _coloured(profile, parameters, tiles)


def _coloured(profile: Profile, parameters: Parameters, tiles: pa.Table) -> pa.Table:
    """Tiles with the color of each row where the request says by what."""
    by = parameters.text("color")
    return _GROUPS.add_slots(profile, by, tiles) if by else tiles


def _groups(profile: Profile, parameters: Parameters) -> dict[str, Any]:
    return {"names": list(group_names(profile, parameters.text("color")))}


def _charged(profile: Profile, parameters: Parameters) -> pa.Table:
    """Charged time of tracks of operations; with `by` and `value`, of what is lit on them."""
    tracks = profile.tracks()
    places = [place for place in _asked(profile, parameters) if is_charged(tracks[place])]
    by, value = parameters.text("by"), parameters.text("value")
    rows = {place: _LIT.rows(profile, by, value, tracks[place].table) for place in places} if by else None
    tiles = _CHARGED.tiles(profile, places, parameters.tile_range(), _origin(profile, parameters), rows)
    return _coloured(profile, parameters, tiles)


def _counters(profile: Profile, parameters: Parameters) -> pa.Table:
    places = _places(profile, parameters, of_counters=True)
    return counter_tiles(profile, places, parameters.tile_range(), _origin(profile, parameters))


def _use(profile: Profile, parameters: Parameters) -> pa.Table:
    """The use of engines, by the places of their tracks."""
    tracks = profile.tracks()
    places = [place for place in _asked(profile, parameters) if has_use(tracks[place])]
    return use_tiles(profile, places, parameters.tile_range(), _origin(profile, parameters))


def _places(profile: Profile, parameters: Parameters, *, of_counters: bool) -> list[int]:
    """The asked tracks of spans, or of counters: a page may not know yet what a capture has written."""
    tracks = profile.tracks()
    asked = _asked(profile, parameters)
    return [place for place in asked if tracks[place].is_counter == of_counters]


def _asked(profile: Profile, parameters: Parameters) -> list[int]:
    """The asked tracks; of a profile that is being written those that it has just now: between two states of
    its tables it may have fewer.
    """
    count = len(profile.tracks())
    places = parameters.places("tracks", count if profile.complete else MOST_TRACKS)
    return [place for place in places if place < count]


def _origin(profile: Profile, parameters: Parameters) -> int:
    """What the engine counts from; `shift` moves a profile that is compared beside another."""
    return origin_ns(profile) + parameters.integer("shift", -FARTHEST_NS, FARTHEST_NS, 0)


def _lit(profile: Profile, parameters: Parameters) -> pa.Table:
    places = _asked(profile, parameters)
    by, value = parameters.text("by"), parameters.text("value")
    return _LIT.tiles(profile, by, value, places, parameters.tile_range(), _origin(profile, parameters))


def _details(profile: Profile, parameters: Parameters) -> dict[str, Any]:
    return span_details(profile, *_span(profile, parameters), parameters.integer("depth", 0, MOST_ROWS, 0))


def _dependencies(profile: Profile, parameters: Parameters) -> dict[str, Any]:
    return dependency_chain(profile, *_span(profile, parameters), origin_ns(profile))


def _statistics(profile: Profile, parameters: Parameters) -> dict[str, Any]:
    return {"tracks": range_statistics(profile, *parameters.time_range(origin_ns(profile)))}


def _names(profile: Profile, parameters: Parameters) -> dict[str, Any]:
    track = _track(profile, parameters)
    shown = parameters.time_range(origin_ns(profile))
    return range_names(profile, track, *shown) | {"sql": range_query(profile, track, *shown)}


def _search(profile: Profile, parameters: Parameters) -> dict[str, Any]:
    limit = parameters.integer("limit", 1, MOST_HITS, MOST_HITS)
    found = profile.search(parameters.text("text"), limit=limit)
    origin = origin_ns(profile)
    hits = [{**hit, "start_ns": hit["start_ns"] - origin} for hit in found.to_pylist()]
    return {"hits": hits, "is_cut": len(hits) >= limit}


def _track(profile: Profile, parameters: Parameters) -> Track:
    tracks = profile.tracks()
    return tracks[parameters.integer("track", 0, len(tracks) - 1)]


def _span(profile: Profile, parameters: Parameters) -> tuple[Track, int]:
    return _track(profile, parameters), parameters.integer("row", 0, MOST_ROWS)


_GROUPS = SpanGroups()
_LIT = LitSpans()
_CHARGED = ChargedTiles()
_ANSWERS: dict[str, Callable[[Profile, Parameters], Any]] = {
    "timeline": _timeline,
    "counters": _counters,
    "use": _use,
    "charged": _charged,
    "lit": _lit,
    "details": _details,
    "dependencies": _dependencies,
    "statistics": _statistics,
    "names": _names,
    "search": _search,
    "groups": _groups,
}


def encoded(content: Any) -> Response:
    """Content as an answer: tables as Arrow IPC streams, everything else as JSON."""
    if not isinstance(content, pa.Table):
        return jsonify(content)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, content.schema) as stream:
        for batch in content.to_batches():
            stream.write_batch(batch)
    return Response(sink.getvalue().to_pybytes(), mimetype=ARROW)


def refusal(error: Exception) -> tuple[Response, int]:
    """What is answered where there is no such profile, or a request makes no sense."""
    is_unknown = type(error).__name__ in ("UnknownProfileError", "NotAProfileError")
    return Response(f"{error}\n", mimetype="text/plain"), 404 if is_unknown else 400
