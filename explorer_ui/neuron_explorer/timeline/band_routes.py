"""The routes of findings and warnings on the timeline: `/data/PROFILE/bands`, below it `tiles` and `details`.

`scope_start` and `scope_end` name the range that findings are simulated for; without them, that is all of the
profile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Flask, Response, request

from neuron_explorer import results
from neuron_explorer.page import Site
from neuron_explorer.timeline.bands import WARNINGS, Band, BandTrack, band_tiles, finding_bands
from neuron_explorer.timeline.last_results import LastResults
from neuron_explorer.timeline.lit_spans import LitSpans
from neuron_explorer.timeline.parameters import FARTHEST_NS, ParameterError, Parameters
from neuron_explorer.timeline.routes import encoded, refusal
from neuron_explorer.timeline.track_list import origin_ns
from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.reader import Profile

PATIENCE_S = 0.1
KEPT = 16
MOST_SPANS = 2_000_000
MOST_BAND_TRACKS = 2
Range = tuple[int, int]


def register(server: Flask, site: Site) -> None:
    """Add the routes to a server."""
    routes = _BandRoutes(site)
    blueprint = Blueprint("timeline_bands", __name__, url_prefix="/data/<profile_id>/bands")
    answers: dict[str, Callable[[str, Parameters], Any]] = {
        "": routes.tracks, "/tiles": routes.tiles, "/details": routes.details,
    }  # fmt: skip
    for path, make in answers.items():
        blueprint.add_url_rule(path, path or "tracks", _answer(make))
    blueprint.register_error_handler(NeuronToolsError, refusal)
    server.register_blueprint(blueprint)


def _answer(make: Callable[[str, Parameters], Any]) -> Callable[[str], Response]:
    def respond(profile_id: str) -> Response:
        return encoded(make(profile_id, Parameters(request.args)))

    return respond


class _BandRoutes:
    """Answers about bands; those of the last few scopes are kept."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lit = LitSpans()
        self._kept = LastResults[tuple[BandTrack, ...]](KEPT)

    def tracks(self, profile_id: str, parameters: Parameters) -> dict[str, Any]:
        """The tracks of bands that there are; `ready` is false while findings are looked for."""
        origin = origin_ns(self._profile(profile_id))
        found, is_ready = self._tracks(profile_id, self._scope(profile_id, parameters))
        return {"tracks": [track.answer(origin) for track in found], "ready": is_ready}

    def tiles(self, profile_id: str, parameters: Parameters) -> Any:
        """Tiles of bands."""
        found, _ = self._tracks(profile_id, self._scope(profile_id, parameters))
        # A page may ask for bands of what a capture had written before: they need not be there any more.
        places = parameters.places("tracks", MOST_BAND_TRACKS)
        origin = origin_ns(self._profile(profile_id))
        return band_tiles(
            found, [place for place in places if place < len(found)], parameters.tile_range(), origin
        )

    def details(self, profile_id: str, parameters: Parameters) -> dict[str, Any]:
        """What is told of a band."""
        found, _ = self._tracks(profile_id, self._scope(profile_id, parameters))
        track = parameters.integer("track", 0, max(len(found) - 1, 0))
        bands = found[track].bands if found else ()
        row = parameters.integer("row", 0, FARTHEST_NS)
        if row >= len(bands):
            raise ParameterError("There is no such band: open the timeline anew.")
        return _band_details(bands[row])

    def _profile(self, profile_id: str) -> Profile:
        return self._site.library.get(profile_id)

    def _scope(self, profile_id: str, parameters: Parameters) -> Range | None:
        if "scope_start" not in parameters.given:
            return None
        return parameters.time_range(origin_ns(self._profile(profile_id)), "scope_")

    def _is_too_long(self, profile_id: str, scope: Range | None) -> bool:
        """Whether findings of all of a profile would take too long for something that nobody asked for."""
        tracks = self._profile(profile_id).tracks()
        return scope is None and sum(track.spans for track in tracks if not track.is_counter) > MOST_SPANS

    def _tracks(self, profile_id: str, scope: Range | None) -> tuple[tuple[BandTrack, ...], bool]:
        """Findings before warnings, each as soon as it is known; whether all is."""
        analyses = self._site.analyses
        warnings = analyses.job(profile_id, WARNINGS, range_ns=scope)
        findings = (
            None
            if self._is_too_long(profile_id, scope)
            else (analyses.job(profile_id, results.FINDINGS, range_ns=scope))
        )
        if not warnings.wait(PATIENCE_S) or (findings is not None and not findings.wait(PATIENCE_S)):
            return (), False

        def make() -> tuple[BandTrack, ...]:
            told = (findings.result or ()) if findings is not None else ()
            bands = finding_bands(self._profile(profile_id), told, self._lit, scope)
            return _as_tracks(bands, warnings.result or ())

        return self._kept.of((profile_id, scope, id(warnings)), make), True


def _as_tracks(findings: tuple[Band, ...], warnings: tuple[Band, ...]) -> tuple[BandTrack, ...]:
    named = (("Findings", findings), ("Warnings", warnings))
    return tuple(BandTrack(name, bands) for name, bands in named if bands)


def _band_details(band: Band) -> dict[str, Any]:
    details = band.details
    file, line = details.get("source_file"), details.get("source_line")
    source = {"file": file, "line": line} if file and line else None
    belongs = [
        {"by": by, "value": str(details[column]), "level": level, "name": str(details[column])}
        for column, by, level in (("framework_name", "operation", "Operation"), ("layer", "layer", "Module"))
        if column in details
    ]
    return {"columns": {"name": band.name, **details}, "source": source, "belongs": belongs}
