"""What an edit of a kernel would change, for editors: lines as they were captured, and as they would be.

Rehearsing runs the user's code, so only an editor's own server has this route, and it asks for the token in
the header `Authorization`, which a page in a browser does not have.
"""

from __future__ import annotations

import ast
import shutil
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from flask import Flask, Response, request

from neuron_explorer.api import answers
from neuron_explorer.api.memo import Memo
from neuron_explorer.api.preview_process import Answer, PreviewProcess
from neuron_explorer.api.routes import PREFIX, AddingRefusedError, json_answer, seen_by, text_field
from neuron_explorer.api.source_costs import FileCosts, SourceCosts, Work, read_source_costs
from neuron_explorer.library import ProfileLibrary
from neuron_tools.profile.reader import Profile, open_profile
from neuron_tools.web_access import came_with_header

LONGEST_TEXT = 4 << 20
_SUPERSEDED: Answer = {"superseded": True, "kernels": [], "problems": [], "after": None}
_FRAMEWORKS = ("torch",)
"""Imported before requests are answered where captured files use them: they take seconds."""


class Previews:
    """Rehearses edits of files of a library's profiles.

    Attributes:
        arrived: Requests so far; the last one counts.
    """

    def __init__(self, library: ProfileLibrary, process: PreviewProcess) -> None:
        self._library = library
        self._process = process
        self._memo = Memo()
        self._lock = Lock()
        self.arrived = 0

    def register(self, server: Flask) -> None:
        """Put the route on a server."""
        path = f"{PREFIX}/profiles/<profile_id>/preview"
        server.add_url_rule(path, "preview", self._answer, methods=["POST"])

    def _answer(self, profile_id: str) -> Response:
        if not came_with_header():
            raise AddingRefusedError("Edits are simulated with the token in the header Authorization.")
        profile, own = self._library.get(profile_id), tuple(request.args.getlist("own"))
        file, text = text_field("path"), text_field("text")
        return json_answer(self.preview(profile, file, text[:LONGEST_TEXT], own))

    def preview(self, profile: Profile, file: str, text: str, own: tuple[str, ...] = ()) -> Answer:
        """Costs of the lines of a file in the kernel calls that it takes part in: captured, and with a text.

        Args:
            file: As the profile names it.
            text: What it would be.
            own: Folders of the user's own code.

        Returns:
            "kernels", "problems" as `neuron_profile.preview` has them; "before" and "after": costs of the
            file, null where there is nothing to compare; or "superseded" where a newer request came.

        Raises:
            PreviewFailedError: The edit could not be rehearsed.
        """
        with self._lock:
            self.arrived += 1
            arrived = self.arrived
        before = self._memo.get(profile, (file, own), lambda: self._costs(profile, file, None, own))
        if not before["kernels"]:
            return {"kernels": [], "problems": [], "before": None, "after": None}
        after = self._costs(profile, file, text, own, arrived)
        return {**after, "before": before["after"]}

    def _costs(
        self, profile: Profile, file: str, text: str | None, own: tuple[str, ...], arrived: int | None = None
    ) -> Answer:
        asked = {"profile": str(profile.path), "file": file, "text": text}
        modules = _frameworks_of(profile, file)
        with self._lock:  # what waited for the captured costs goes on in any order
            if arrived not in (None, self.arrived):
                return _SUPERSEDED
            future = self._process.ask(**asked, modules=modules)
        answer = self._process.answer_of(future)
        if "superseded" in answer:
            return _SUPERSEDED
        written: list[Mapping[str, Any]] = answer.pop("profiles")
        costs = [(_read(Path(each["path"]), own), each["times"]) for each in written]
        return {**answer, "after": _costs_json(costs, file) if costs else None}


def _read(path: Path, own: tuple[str, ...]) -> SourceCosts:
    """The costs of a profile that nobody else reads; it is removed."""
    with open_profile(path) as profile:
        seen = seen_by(profile, own) if own else None
        try:
            costs = read_source_costs(seen or profile)
        finally:
            if seen is not None:
                seen.close()
    shutil.rmtree(path, ignore_errors=True)
    return costs


def _costs_json(parts: list[tuple[SourceCosts, int]], file: str) -> Answer:
    """Costs of profiles that each stand for so many, as one."""
    columns: tuple[dict[int, Work], ...] = tuple(defaultdict(Work) for _ in range(3))
    for costs, times in parts:
        found = costs.files.get(file)
        lines = (found.own, found.own_code, found.total) if found else ()
        for column, works in zip(columns, lines):
            for line, work in works.items():
                column[line].add(work.scaled(times))
    device_ns = sum(costs.device_ns * times for costs, times in parts)
    own, own_code, total = columns
    whole = FileCosts(own, own_code, total, functions=())
    return answers.file_json(SourceCosts(device_ns, parts[0][0].peak_flops, {file: whole}), file)


def _frameworks_of(profile: Profile, file: str) -> list[str]:
    """Frameworks that a captured file imports."""
    rows = profile.query(
        "SELECT text FROM SourceFile WHERE path = ? AND text IS NOT NULL", [file]
    ).to_pylist()
    try:
        tree = ast.parse(rows[0]["text"]) if rows else ast.Module([], [])
    except (SyntaxError, ValueError):
        return []
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
    return [name for name in _FRAMEWORKS if name in imported]
