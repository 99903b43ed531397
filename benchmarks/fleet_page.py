"""`python -m benchmarks.fleet_page REFRESHES`: what an open page of 1,000 hosts costs the dashboard, as JSON.

The hosts are those of a stand-in for a Prometheus server, which runs in another process, so that only the
dashboard's own time counts. The page is refreshed as an open browser does, by its callback's requests.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psutil

from neuron_monitor.dashboard.app import make_fleet_app
from neuron_monitor.dashboard.fleet import SPREAD, FleetSource
from neuron_monitor.dashboard.fleet_page import INTERVAL_MS

HOSTS = 1000
WINDOW_S = 3600
_WARM_UP = 2
_CALLBACK = "/_dash-update-component"


class Prometheus(BaseHTTPRequestHandler):
    """Answers each query with a value of each host; a spread with three lines."""

    def do_GET(self) -> None:
        """One query."""
        address = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(address.query).items()}
        if address.path.endswith("query_range"):
            result = _lines(asked)
        else:
            result = [{"metric": _labels(number), "value": [1e9, str(number % 7)]} for number in range(HOSTS)]
        content = json.dumps({"status": "success", "data": {"result": result}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


def _labels(number: int) -> dict[str, str]:
    return {
        "instance": f"10.0.{number // 256}.{number % 256}:8000",
        "instance_type": "trn2.48xlarge",
        "instance_id": f"i-{number:017x}",
    }


def _lines(asked: dict[str, str]) -> list[dict[str, Any]]:
    names = (
        SPREAD if "quantile(" in asked["query"] else [_labels(number)["instance"] for number in range(HOSTS)]
    )
    moments = range(int(asked["start"]), int(asked["end"]) + 1, int(asked["step"]))
    values = [[moment, f"{0.5 + moment % 97 / 200}"] for moment in moments]
    return [{"metric": {"instance": name}, "values": values} for name in names]


def _serve() -> None:
    """Answer on any port, which is printed."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Prometheus)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def _question(client: Any) -> dict[str, Any]:
    """The request that an open page sends at each tick."""
    dependencies = client.get("/_dash-dependencies").get_json()
    (told,) = [each for each in dependencies if "hosts.children" in each["output"] and each["inputs"]]
    values = {"window": WINDOW_S, "theme": "light", "find": None, "tick": 1}
    outputs = [
        dict(zip(("id", "property"), name.rsplit(".", 1))) for name in told["output"].strip(".").split("...")
    ]
    inputs = [{**each, "value": values.get(each["id"])} for each in told["inputs"]]
    return {
        "output": told["output"],
        "outputs": outputs,
        "inputs": inputs,
        "changedPropIds": ["tick.n_intervals"],
    }


def measure(refreshes: int, port: str) -> dict[str, float]:
    """Processor seconds and memory of so many refreshes, and the time in which an open page asks for them."""
    app = make_fleet_app(FleetSource(f"http://127.0.0.1:{port}"))
    client = app.server.test_client()
    question, size = _question(client), 0
    for number in range(_WARM_UP + refreshes):
        if number == _WARM_UP:
            began_s = time.process_time()
        answer = client.post(_CALLBACK, json=question)
        assert answer.status_code == 200, answer.data
        size = len(answer.data)
    return {
        "processor_s": time.process_time() - began_s,
        "passed_s": refreshes * INTERVAL_MS / 1000,
        "memory_bytes": psutil.Process().memory_info().rss,
        "answer_bytes": size,
        "hosts": HOSTS,
    }


def main() -> None:
    """Start the stand-in, and print what the page costs."""
    if sys.argv[1] == "serve":
        _serve()
        return
    command = [sys.executable, "-m", "benchmarks.fleet_page", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            print(json.dumps(measure(int(sys.argv[1]), server.stdout.readline().strip())))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
