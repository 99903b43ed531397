"""Requests to the Explorer and the tree that the monitor reads: what servers of ours are asked and shown."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

TOKEN = "fuzzed"
"""Without it every request is refused at the door."""
PAGES = (
    "",
    "overview",
    "timeline",
    "source",
    "operators",
    "roofline",
    "memory",
    "advice",
    "workspace",
    "query",
)
DATA = ("tracks", "spans", "counters", "search", "details")
ANSWER_S = 300.0
"""The campaign has a deadline of its own, of the processors' time."""
DEVICES = 2
RESTING_NS = 3_000_000_000


def make_requests(profile: Path, folder: Path) -> None:
    """Write sound requests about a profile, one a file: for pages, data, the editor, callbacks."""
    folder.mkdir()
    requests = [*_gets(_id(profile)), *_posts(profile)]
    for number, request in enumerate(requests):
        (folder / f"{number:03}.http").write_bytes(request)


def _id(profile: Path) -> str:
    from neuron_explorer.library import profile_id

    return profile_id(profile)


def _gets(profile: str) -> Iterator[bytes]:
    pages = [f"/{page}?profile={profile}&start_ns=0&end_ns=50000" for page in PAGES]
    data = [f"/data/{profile}/{name}?first=0&start_ns=0&end_ns=50000&width=300&text=a" for name in DATA]
    editor = [
        f"/api/editor/profiles/{profile}/{name}?path=train.py&first=1&last=9&own=/src"
        for name in ("summary", "lines", "spans", "span", "findings", "hierarchy", "source", "sources")
    ]
    rest = [f"/download/query?profile={profile}&sql=SELECT+1", "/api/editor/compare?base=x&new=y"]
    for path in (*pages, *data, *editor, *rest, f"/workspace/related/{profile}?sel=operation:aten::mm"):
        yield _request("GET", path)


def _posts(profile: Path) -> Iterator[bytes]:
    about = f"/api/editor/profiles/{_id(profile)}"
    yield _request("POST", f"{about}/query", {"sql": "SELECT opcode FROM Instruction", "rows": 5})
    yield _request("POST", f"{about}/what-if", {"change": "engine:Tensor=0"})
    server = _application(profile)
    client = server.test_client()
    known = client.get("/_dash-dependencies", headers=_headers(), base_url="http://127.0.0.1:3001").get_json()
    for each in known:
        if not any(part["id"].startswith("{") for part in (*each["inputs"], *each["state"])):
            yield _request("POST", "/_dash-update-component", _callback(each, profile))


def _callback(known: Mapping[str, Any], profile: Path) -> dict[str, Any]:
    """The body with which a page calls a callback."""
    values: dict[str, Any] = {
        "pathname": "/overview",
        "search": f"?profile={_id(profile)}",
        "value": "SELECT 1",
    }
    values |= {"getRowsRequest": {"startRow": 0, "endRow": 9, "sortModel": [], "filterModel": {}}}

    def told(each: Mapping[str, str]) -> dict[str, Any]:
        return {**each, "value": values.get(each["property"], 1 if each["property"][:2] == "n_" else None)}

    outputs: list[Any] = [
        {"id": output.rpartition(".")[0], "property": output.rpartition(".")[2].partition("@")[0]}
        for output in known["output"].strip(".").split("...")
    ]
    return {
        "output": known["output"],
        "outputs": outputs if known["output"].startswith("..") else outputs[0],
        "inputs": [told(each) for each in known["inputs"]],
        "state": [told(each) for each in known["state"]],
        "changedPropIds": [f"{each['id']}.{each['property']}" for each in known["inputs"]],
    }


def _request(method: str, path: str, content: Mapping[str, Any] | None = None) -> bytes:
    body = b"" if content is None else json.dumps(content).encode()
    kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    named = "".join(f"{name}: {value}\r\n" for name, value in _headers().items())
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:3001\r\n{named}{kind}\r\n".encode() + body


def _headers() -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}"}


@cache
def _application(profile: Path) -> Any:
    from neuron_explorer.library import ProfileLibrary
    from neuron_explorer.server import make_guarded_server
    from neuron_explorer.sharing import SharedStore, Sharing
    from neuron_tools.web_access import Access

    sharing = Sharing(
        has_users=True
    )  # paths of this machine, which a request may name, are not looked through
    store = SharedStore(sharing, profile.parent / "store")
    access = Access("neuron-explorer", 3001, TOKEN)
    return make_guarded_server(ProfileLibrary([profile]), access, store, sharing=sharing)


@cache
def _port(profile: Path) -> int:
    """Serves a profile in this process, from now on."""
    from neuron_explorer.server import wsgi_server

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    listener = socket.create_server(("127.0.0.1", 0))
    server = wsgi_server(_application(profile), listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(listener.getsockname()[1])


def ask(profile: Path, request: bytes) -> int:
    """Send a request as it is to an Explorer of a profile.

    Returns:
        The status of the answer; 0 where there is none, as to what is no request.

    Raises:
        AssertionError: The Explorer says that it failed.
    """
    with socket.create_connection(("127.0.0.1", _port(profile)), timeout=ANSWER_S) as connection:
        answer = b""
        with suppress(ConnectionError):
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 16):
                answer += piece if len(answer) < 1 << 16 else b""
    status = answer.split(b" ", 2)[1] if answer.startswith(b"HTTP/") and answer.count(b" ") > 1 else b"0"
    if status.isdigit() and int(status) >= 500 and int(status) != 501:
        raise AssertionError(f"answered {int(status)}: {answer[-200:]!r}")
    return int(status) if status.isdigit() else 0


def make_tree(folder: Path) -> None:
    """Write a tree of Neuron devices, as a driver shows them, with a process that uses them."""
    from tests.fixtures.neuron_sysfs import INFERENTIA2, SysfsTree, process_core

    tree = SysfsTree(folder / "tree", INFERENTIA2, DEVICES)
    for core in range(DEVICES * INFERENTIA2.cores):
        tree.count(core, success=7, inference_count=7, nc_time_in_use=500, tensors=1 << 20)
    tree.publish(os.getppid(), [0, 1], cores={str(core): process_core(tree, core) for core in (0, 1)})


def watch(folder: Path) -> None:
    """Look at a tree twice as the monitor does, and report what was seen."""
    import orjson

    from neuron_monitor.api.sample import Sampler
    from neuron_monitor.api.tree import DeviceTree
    from neuron_monitor.prometheus.exporter import Exporter
    from neuron_monitor.report.config import default_configuration
    from neuron_monitor.report.reporter import Reporter

    now = iter(range(0, 1 << 62, RESTING_NS))
    tree = DeviceTree(str(folder / "tree"), clock=lambda: next(now))
    sampler = Sampler(tree, clock=lambda: next(now))
    try:
        reporter, exporter = Reporter(default_configuration(1.0), sampler.sample()), Exporter(sampler, 1.0)
        orjson.dumps(reporter.report(sampler.sample()))
        exporter.update()
        exporter.text()
    finally:
        sampler.close()
