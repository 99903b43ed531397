"""The JSON routes: `register` puts them on the Explorer's server, below `/api/editor`.

Requests are guarded by the server's own rules; taking in a profile by its path needs more: the token in the
header `Authorization`, which a page in a browser does not have.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from flask import Blueprint, Flask, Response, request, send_file

from neuron_explorer.api import answers
from neuron_explorer.api.answers import Json, plain
from neuron_explorer.api.memo import Memo
from neuron_explorer.api.source_costs import SourceCosts, read_source_costs
from neuron_explorer.api.spans import spans_of_lines
from neuron_explorer.library import ProfileLibrary, UnknownProfileError
from neuron_explorer.sharing import NOT_SHARED, NotSharedError, Sharing
from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.store.frontier import OwnCode
from neuron_tools.version import installed_version
from neuron_tools.web_access import came_with_header

PREFIX = "/api/editor"
MOST_ROWS = 10_000
MOST_SPANS = 5_000
QUERY_TIMEOUT_S = 60.0
EXPORTS = ("perfetto", "chrome")


_FILES = """
SELECT path, max(sha256) AS sha256 FROM (
    SELECT path, sha256 FROM SourceFile UNION ALL SELECT name, NULL FROM StackFrameFileName
) WHERE path <> '' GROUP BY path ORDER BY path
"""


class AddingRefusedError(NeuronToolsError):
    """A profile was to be taken in by somebody who may only look at those that are there."""


def register(server: Flask, library: ProfileLibrary, sharing: Sharing = NOT_SHARED) -> None:
    """Put the routes on a server."""
    blueprint = Blueprint("editor", __name__, url_prefix=PREFIX)
    blueprint.register_error_handler(NeuronToolsError, _refuse)
    profiles = _Profiles(library, sharing)
    blueprint.get("/")(_about)
    blueprint.get("/profiles")(profiles.entries)
    blueprint.post("/profiles")(profiles.add)
    blueprint.get("/compare")(profiles.compare)
    for name, answer in profiles.views.items():
        blueprint.get(f"/profiles/<profile_id>/{name}", endpoint=name)(_view(library, answer))
    for name, answer in profiles.requests.items():
        blueprint.post(f"/profiles/<profile_id>/{name}", endpoint=name)(_view(library, answer))
    blueprint.get("/profiles/<profile_id>/export/<kind>")(profiles.export)
    server.register_blueprint(blueprint)


def _view(library: ProfileLibrary, answer: Callable[[Profile], Any]) -> Callable[[str], Response]:
    def view(profile_id: str) -> Response:
        return json_answer(answer(library.get(profile_id)))

    return view


def _about() -> Response:
    return json_answer({"program": "neuron-explorer", "version": installed_version()})


class _Profiles:
    """Answers about the profiles of a library."""

    def __init__(self, library: ProfileLibrary, sharing: Sharing) -> None:
        self._library = library
        self._sharing = sharing
        self._memo = Memo()
        self.views: dict[str, Callable[[Profile], Any]] = {
            "identity": self._identity,
            "summary": lambda profile: plain(profile.summary()),
            "sources": _sources,
            "source": _source,
            "lines": self._lines,
            "spans": self._spans,
            "span": _span,
            "stop": _stop,
            "findings": self._findings,
            "edit": self._edit,
            "hierarchy": self._hierarchy,
        }
        self.requests: dict[str, Callable[[Profile], Any]] = {"what-if": _what_if, "query": _query}

    def entries(self) -> Response:
        """All profiles."""
        return json_answer([answers.entry_json(entry) for entry in self._library.entries()])

    def add(self) -> Response:
        """Take in a profile, or a folder of them, by its path on this machine."""
        self._sharing.require_paths()
        if not came_with_header():
            raise AddingRefusedError("Profiles are added with the token in the header Authorization.")
        wanted = self._library.add(text_field("path"))
        return json_answer(answers.entry_json(self._library.entry(wanted)) if wanted else {})

    def compare(self) -> Response:
        """What got slower or faster between two profiles."""
        from neuron_profile.analysis.comparison.difference import compare
        from neuron_profile.reports.difference_text import as_json

        base, new = (self._library.get(_argument(name)) for name in ("base", "new"))
        return Response(as_json(compare(base, new)), mimetype="application/json")

    def export(self, profile_id: str, kind: str) -> Response:
        """The profile as a trace file."""
        from neuron_tools.profile.export.formats import FORMATS, ExportFormat

        if kind not in EXPORTS:
            raise UsageError(f"There is no export {kind!r}: choose one of {', '.join(EXPORTS)}.")
        chosen: ExportFormat = FORMATS.load(kind)
        profile = self._library.get(profile_id)
        folder = tempfile.TemporaryDirectory(prefix="neuron-tools-")
        file = Path(folder.name) / f"{profile.path.stem}{chosen.suffix}"
        chosen.export(profile, file)
        response: Response = send_file(file, as_attachment=True, download_name=file.name)
        response.call_on_close(folder.cleanup)
        return response

    def _own(self, profile: Profile) -> Profile:
        """The profile as one sees it whose own code is in the folders that the request names.

        A profile with none of their files, captured elsewhere, keeps its own idea of what is the user's.
        """
        folders = tuple(request.args.getlist("own"))
        if not folders:
            return profile
        seen: Profile | None = self._memo.get(profile, ("own", folders), lambda: seen_by(profile, folders))
        return profile if seen is None else seen

    def _costs(self, profile: Profile) -> SourceCosts:
        return self._memo.get(profile, "costs", lambda: read_source_costs(profile))

    def _identity(self, profile: Profile) -> Json:
        from neuron_profile.analysis.identity import identify

        return answers.identity_json(identify(profile))

    def _lines(self, profile: Profile) -> Json:
        own, range_ns = self._own(profile), _range()
        if range_ns is None:
            return answers.file_json(self._costs(own), _argument("path"))
        ranged = self._memo.get(own, "range", _RangeCosts)
        return answers.file_json(ranged.costs(own, range_ns), _argument("path"))

    def _spans(self, profile: Profile) -> Json:
        first, last = _number("first", 1), _number("last", 0)
        return spans_of_lines(profile, _argument("path"), first, max(first, last), MOST_SPANS)

    def _findings(self, profile: Profile) -> list[Json]:
        from neuron_profile.analysis.advice.advise import advise

        own = self._own(profile)
        findings = self._memo.get(own, "findings", lambda: advise(own))
        return [answers.finding_json(finding) for finding in findings]

    def _edit(self, profile: Profile) -> Json:
        """The edit that mends a finding, of the text that was captured; null where none can be derived."""
        from neuron_profile.analysis.advice.advise import advise
        from neuron_profile.fix.propose import NoEditError, choose_for_kept

        own = self._own(profile)
        findings = self._memo.get(own, "findings", lambda: advise(own))
        try:
            proposal = choose_for_kept(profile, findings, _argument("finding"))
        except NoEditError as error:
            return {"reason": str(error), "title": None, "text": None}
        return {"reason": None, "title": proposal.edit.title, "text": proposal.edit.text}

    def _hierarchy(self, profile: Profile) -> Json:
        from neuron_profile.analysis.hotspots import find_hotspots

        own = self._own(profile)
        return answers.hierarchy_json(self._memo.get(own, "hierarchy", lambda: find_hotspots(own)))


class _RangeCosts:
    """Costs of the range of a profile that was asked for last: its files are asked for one by one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._range_ns = (0, 0)
        self._costs: SourceCosts | None = None

    def costs(self, profile: Profile, range_ns: tuple[int, int]) -> SourceCosts:
        """The costs of a range in ns."""
        with self._lock:
            if self._costs is None or self._range_ns != range_ns:
                with profile.slice(*range_ns) as part:
                    self._costs, self._range_ns = read_source_costs(part), range_ns
            return self._costs


def _range() -> tuple[int, int] | None:
    """The range that the request names; None for all of the profile."""
    if "start_ns" not in request.args:
        return None
    return _number("start_ns", 0), _number("end_ns", 0)


def seen_by(profile: Profile, folders: tuple[str, ...]) -> Profile | None:
    """The profile with other own code; None where it has nothing of these folders."""
    seen = profile.seen_by(OwnCode(folders))
    if seen.query("SELECT 1 FROM Frontier WHERE is_own LIMIT 1").num_rows:
        return seen
    seen.close()
    return None


def _sources(profile: Profile) -> Json:
    """Files that ran; asked for every Python file that is opened, so it computes no costs."""
    return answers.sources_json(profile.query(_FILES).to_pylist(), profile.tables().get("Instruction", 0))


def _source(profile: Profile) -> Json:
    """A source file as it was when the profile was captured."""
    query = "SELECT path, sha256, text FROM SourceFile WHERE path = ? LIMIT 1"
    found: list[Json] = profile.query(query, [_argument("path")]).to_pylist()
    if not found:
        raise UnknownProfileError("The profile does not keep this file.")
    return found[0]


def _span(profile: Profile) -> Json:
    """All columns of one span's row, and its source stack, innermost first."""
    from neuron_profile.analysis.source_frames import load_frames, stack

    tables = {track.id: track.table for track in profile.tracks()}
    row = profile.row(tables.get(_argument("track"), ""), _number("row", 0))
    leaf = str(row.get("stack_frame_ids") or "").split(",")[0]
    chain = stack(load_frames(profile), leaf)
    frames = [{"file": frame.file, "line": frame.line, "function": frame.function} for frame in chain]
    if not frames and row.get("source_file"):
        frames = [{"file": row["source_file"], "line": row.get("source_line") or 1, "function": ""}]
    return {"row": plain(row), "stack": frames}


def _stop(profile: Profile) -> Json:
    """Where a debugger stops at a span's execution of its line, or at the slowest execution of a line."""
    from neuron_profile.analysis.line_executions import stop_at_line, stop_at_span
    from neuron_profile.analysis.source_frames import SourceLine

    if "track" not in request.args:
        return answers.stop_json(stop_at_line(profile, SourceLine(_argument("path"), _number("line", 1))))
    tables = {track.id: track.table for track in profile.tracks()}
    table = tables.get(_argument("track"), "")
    return answers.stop_json(stop_at_span(profile, table, profile.row(table, _number("row", 0))))


def _what_if(profile: Profile) -> Json:
    from neuron_profile.analysis.whatif.change import parse_change
    from neuron_profile.analysis.whatif.run import WhatIf

    return answers.gain_json(WhatIf(profile).gain(parse_change(text_field("change"))))


def _query(profile: Profile) -> Json:
    return answers.table_json(profile.query(text_field("sql"), timeout_s=QUERY_TIMEOUT_S), MOST_ROWS)


def _argument(name: str) -> str:
    value: str | None = request.args.get(name)
    if value is None:
        raise UsageError(f"The request lacks {name!r}.")
    return value


def _number(name: str, default: int) -> int:
    try:
        return int(request.args.get(name, default))
    except ValueError:
        raise UsageError(f"{name!r} must be a whole number.") from None


def text_field(name: str) -> str:
    """A text of the request's JSON body.

    Raises:
        UsageError: It has none of this name.
    """
    try:
        body = request.get_json(silent=True)
    except RecursionError:
        raise UsageError("The request is nested too deeply.") from None
    value = body.get(name) if isinstance(body, dict) else None
    if not isinstance(value, str):
        raise UsageError(f"The request lacks the text {name!r}.")
    return value


def _refuse(error: NeuronToolsError) -> tuple[Response, int]:
    status = {UnknownProfileError: 404, AddingRefusedError: 403, NotSharedError: 403}.get(type(error), 400)
    return json_answer({"error": str(error)}), status


def json_answer(value: Any) -> Response:
    """A value as the answer."""
    return Response(json.dumps(value, default=str, ensure_ascii=False), mimetype="application/json")
