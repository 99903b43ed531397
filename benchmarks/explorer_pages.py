"""How fast the Explorer's pages other than the timeline answer, and how much their callbacks exchange.

A profile of 10 million spans is served by the Explorer's own server in a process of its own. Each page is
asked for as the browser asks: the callback that draws it, then its sections until nothing waits. The first
round computes what pages show; the rounds that follow are measured. Grids are asked for blocks in other
orders.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, sleep
from typing import Any
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

import numpy as np

from benchmarks import synthetic_profile
from benchmarks.figures import Figure, Target
from neuron_explorer.library import profile_id

PAGES = (
    "/", "/overview", "/hierarchy", "/source", "/operators", "/roofline", "/memory", "/communication",
    "/advice", "/diff", "/query", "/export",
)  # fmt: skip
QUERY = "SELECT engine, opcode, count(*) AS n, sum(duration_ns) AS ns FROM Instruction GROUP BY ALL"
SPANS, QUICK_SPANS = 10_000_000, 400_000
ROUNDS, QUICK_ROUNDS = 8, 4
FRAME = ("page.children", "page.className", "navigation.children", "heading.children", "window-title.data")
GRIDS = (
    ("operation", "time_ns"), ("module", "calls"), ("line", "hbm_bytes"), ("opcode", "count"),
    ("operations", "duration_ns"), ("instructions", "duration_ns"), ("instructions", "start_ts"),
)  # fmt: skip


@dataclass
class Client:
    """Asks the server as the browser does, and notes how long answers take and how large they are."""

    opener: OpenerDirector
    origin: str
    seconds: list[float] = field(default_factory=list)
    answer_bytes: list[int] = field(default_factory=list)

    def callback(self, body: dict[str, Any]) -> Any:
        """The answer of a callback."""
        sent = json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Origin": self.origin}
        request = Request(f"{self.origin}/_dash-update-component", sent, headers)
        begun = perf_counter()
        with self.opener.open(request) as answer:
            received = answer.read()
        self.seconds.append(perf_counter() - begun)
        self.answer_bytes += [len(received), len(sent)]
        return json.loads(received) if received else {}

    def page(self, path: str, search: str) -> None:
        """A page with all its sections."""
        values = {"pathname": path, "search": search, "hash": ""}
        answer = self.callback(
            {
                "output": f"..{'...'.join(FRAME)}..",
                "outputs": [dict(zip(("id", "property"), name.split("."))) for name in FRAME],
                "inputs": [
                    {"id": "address", "property": name, "value": value} for name, value in values.items()
                ],
                "changedPropIds": ["address.pathname"],
            }
        )
        self._settle(answer["response"]["page"]["children"])

    def _settle(self, components: Any) -> None:
        """Ask for the sections that wait, and for those inside them, until none does."""
        waiting = list(waiting_sections(components))
        while waiting:
            own = waiting.pop()
            sleep(0.05)
            answer = self.callback(_section_question(own))
            waiting += waiting_sections(answer)


def waiting_sections(value: Any) -> Iterator[dict[str, str]]:
    """The ids of the sections in an answer that ask again."""
    if isinstance(value, list):
        for part in value:
            yield from waiting_sections(part)
    elif isinstance(value, dict):
        if value.get("type") == "Interval" and not value["props"].get("disabled"):
            identity = value["props"].get("id")
            if isinstance(identity, dict):
                yield {"name": identity["name"], "at": identity["at"]}
        for part in value.values():
            yield from waiting_sections(part)


def _section_question(own: dict[str, str]) -> dict[str, Any]:
    def identity(kind: str) -> dict[str, str]:
        return {"type": kind, **own}

    inputs = [
        {"id": identity("section-tick"), "property": "n_intervals", "value": 1},
        {"id": identity("section-cancel"), "property": "n_clicks"},
        {"id": identity("section-retry"), "property": "n_clicks"},
    ]
    tick = json.dumps(identity("section-tick"), sort_keys=True, separators=(",", ":"))
    match = '{"at":["MATCH"],"name":["MATCH"],"type":"section-body"}.children'
    return {
        "output": match,
        "outputs": {"id": identity("section-body"), "property": "children"},
        "inputs": inputs,
        "state": [{"id": identity("section-body"), "property": "id", "value": identity("section-body")}],
        "changedPropIds": [f"{tick}.n_intervals"],
    }


def _grid_question(column: str, order: str) -> dict[str, Any]:
    asked = {"startRow": 0, "endRow": 100, "sortModel": [{"colId": column, "sort": order}], "filterModel": {}}
    return {
        "output": "..operators-grid.getRowsResponse...operators-count.children..",
        "outputs": [
            {"id": "operators-grid", "property": "getRowsResponse"},
            {"id": "operators-count", "property": "children"},
        ],
        "inputs": [{"id": "operators-grid", "property": "getRowsRequest", "value": asked}],
        "changedPropIds": ["operators-grid.getRowsRequest"],
    }


@contextmanager
def _served(profile: Path) -> Iterator[Client]:
    command = [sys.executable, "-m", "neuron_explorer.cli", str(profile), "-p", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            found = re.search(r"(http://[^/]+)/\S+", server.stdout.readline())
            assert found is not None, "the Explorer did not start"
            opener = build_opener(HTTPCookieProcessor())
            opener.open(found[0]).read()
            yield Client(opener, found[1])
        finally:
            server.terminate()


def _round(client: Client, profile: str) -> None:
    for path in PAGES:
        extra = f"&sql={QUERY.replace(' ', '+')}" if path == "/query" else ""
        client.page(path, f"?profile={profile}{extra}")


def _grids(client: Client, profile: str, order: str) -> None:
    for source, column in GRIDS:
        question = _grid_question(column, order)
        question["state"] = [
            {"id": "address", "property": "pathname", "value": "/operators"},
            {"id": "address", "property": "search", "value": f"?profile={profile}&by={source}"},
        ]
        client.callback(question)


def figures(quick: bool = False) -> list[Figure]:
    """Answer times and sizes of all pages but the timeline."""
    spans, rounds = (QUICK_SPANS, QUICK_ROUNDS) if quick else (SPANS, ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "synthetic.nprof"
        synthetic_profile.write(path, spans)
        with _served(path) as client:
            profile = profile_id(path)
            begun = perf_counter()
            _round(client, profile)
            first_s = perf_counter() - begun
            first_answers = list(client.seconds)
            client.seconds.clear()
            for number in range(rounds):
                _round(client, profile)
                _grids(client, profile, "asc" if number % 2 else "desc")
            warm, sizes = client.seconds, client.answer_bytes
    size = f"{spans:,} spans"
    return [
        Figure("page answer, p95", _ms(warm, 95), "ms", Target("<=", 500, "python"),
               note=f"{size}, {len(warm)} times"),
        Figure("page answer, median", _ms(warm, 50), "ms", note=size),
        Figure(
            "page answer while analyses run, p95", _ms(first_answers, 95), "ms", Target("<=", 500, "python"),
            note=f"{size}, first visit of every page: waiting sections included",
        ),
        Figure("largest exchange of a callback", max(sizes) / 1000, "kB", Target("<=", 100), note=size),
        Figure("first visit of all pages", first_s, "s", note="until every analysis is computed"),
    ]  # fmt: skip


def _ms(seconds: list[float], percentile: float) -> float:
    return float(np.percentile(seconds, percentile)) * 1000


run = figures
