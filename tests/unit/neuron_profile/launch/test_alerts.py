"""Alerts are taken from who may send them, name a process, and become bounded reports."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from neuron_profile.launch.alerts import telling
from neuron_profile.launch.alerts.cause import AlertReport
from neuron_profile.launch.alerts.offenders import Recorded, offenders
from neuron_profile.launch.alerts.responder import Alarm, Responder, alarms_in
from neuron_profile.launch.alerts.server import AlertServer
from neuron_profile.launch.alerts.telling import Listeners, annotation, keep
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.errors import UsageError
from neuron_tools.listening import OpenAddressError

REPORT = AlertReport(
    "slow", "/a/alert.nprof", "host", 1.5, "fp32_matmul", "Matmul in fp32.", "/w/train.py", 21, 0.18
)
TOKEN = "a-token"


def firing(**labels: str) -> dict[str, object]:
    return {"status": "firing", "labels": labels, "annotations": {"summary": "it is slow"}}


def test_what_the_rules_take_is_loaded_before_the_first_alert() -> None:
    code = (
        "import sys; from neuron_profile.launch.alerts.cause import prepare; prepare(); "
        "from neuron_profile.analysis.advice.advise import RULES; before = set(sys.modules); "
        "list(RULES.load_all()); print(sorted(set(sys.modules) - before))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


def test_a_report_is_one_sentence() -> None:
    assert REPORT.sentence == "train.py:21: Matmul in fp32, saves 18.0 %"
    assert annotation(REPORT) == {
        "time": 1500,
        "tags": ["neuron", "host", "fp32_matmul"],
        "text": f"slow: {REPORT.sentence} (neuron-profile view /a/alert.nprof)",
    }
    nothing = AlertReport("slow", "/a/alert.nprof", "host", 1.5)
    assert nothing.sentence == "nothing was found that slows the program down"


def test_only_alerts_that_fire_are_taken() -> None:
    message = {"alerts": [firing(alertname="A", pid="7"), {**firing(alertname="B"), "status": "resolved"}, 3]}
    assert alarms_in(message) == [Alarm("A: it is slow", {"alertname": "A", "pid": "7"})]


def test_alerts_of_prometheus_itself_are_taken_until_they_end() -> None:
    ends = {"A": "2999-01-01T00:00:00.123Z", "B": "2001-01-01T00:00:00Z", "C": "0001-01-01T00:00:00Z"}
    message = [{"labels": {"alertname": name}, "endsAt": moment} for name, moment in ends.items()]
    assert [alarm.reason for alarm in alarms_in(message)] == ["A", "C"]


@pytest.mark.parametrize("message", [None, [], {}, {"alerts": 3}])
def test_what_is_no_message_is_refused(message: object) -> None:
    with pytest.raises(ValueError, match="no list 'alerts'"):
        alarms_in(message)


@pytest.mark.parametrize(
    ("labels", "pids"), [({"pid": "7"}, [7]), ({"runtime_tag": "b"}, [8]), ({}, [7, 9]), ({"pid": "5"}, [])]
)
def test_labels_name_the_process(labels: dict[str, str], pids: list[int], tmp_path: Path) -> None:
    one, other = (CaptureOptions(tmp_path / name) for name in "xy")
    recorded = [Recorded(7, "a", one), Recorded(8, "b", one), Recorded(9, "c", other)]
    assert sorted(found.pid for found in offenders(labels, recorded)) == pids


def test_reports_on_disk_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "MOST_REPORTS", 3)
    for _ in range(5):
        keep(REPORT, tmp_path)
    lines = (tmp_path / "alerts.jsonl").read_text().splitlines()
    assert len(lines) == 3
    assert json.loads(lines[0])["line"] == 21


def test_profiles_on_disk_are_bounded(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"alert-{number}.nprof").mkdir()
    Responder(tmp_path, Listeners(), 60, 2, print)._remove_oldest()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("url", ["file:///etc/passwd", "host:80", "http://"])
def test_a_webhook_is_an_address(url: str) -> None:
    with pytest.raises(UsageError, match="is no address: write it like https://"):
        Listeners(url)


def test_who_cannot_be_told_is_named_in_a_sentence() -> None:
    (sentence,) = Listeners("http://127.0.0.1:9/").tell(REPORT)
    assert sentence.startswith("http://127.0.0.1:9/ was not told: ")


def test_grafana_gets_an_annotation_with_the_token() -> None:
    taken: list[tuple[str, str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            taken.append((self.path, self.headers["Authorization"], content))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as grafana:
        thread = threading.Thread(target=grafana.handle_request)
        thread.start()
        address = f"http://127.0.0.1:{grafana.server_address[1]}/"
        assert Listeners(grafana=address, grafana_token=TOKEN).tell(REPORT) == []
        thread.join()
    assert taken == [("/api/annotations", f"Bearer {TOKEN}", annotation(REPORT))]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, list[list[Alarm]]]]:
    answered: list[list[Alarm]] = []

    class Remembering(Responder):
        def answer(self, alarms: object) -> list[AlertReport]:
            answered.append(alarms)  # type: ignore[arg-type]
            return []

    made = AlertServer(Remembering(tmp_path, Listeners(), 60, 2, print), "127.0.0.1", 0, TOKEN)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{made.server_address[1]}", answered
    made.shutdown()
    made.server_close()
    thread.join()


def sent(url: str, content: bytes, token: str = TOKEN, **headers: str) -> int:
    headers["Authorization"] = f"Bearer {token}"
    try:
        with urlopen(Request(url, content, headers), timeout=10) as answer:
            return int(answer.status)
    except HTTPError as error:
        error.close()
        return error.code


def test_the_server_takes_what_it_may(server: tuple[str, list[list[Alarm]]]) -> None:
    url, answered = server
    content = json.dumps({"alerts": [firing(alertname="A")]}).encode()
    assert sent(f"{url}/alerts", content, "junk") == 401
    assert sent(f"{url}/other", content) == 404
    assert sent(f"{url}/alerts", b"[" * 100_000) == 400
    assert sent(f"{url}/alerts", b"{}") == 400
    assert sent(f"{url}/alerts", b"") == 400
    assert sent(f"{url}/alerts", content, Origin="https://other.example") == 403
    assert sent(f"{url}/alerts", content, Origin=url) == 403
    assert answered == []
    assert sent(f"{url}/alerts", content) == 202


def test_other_machines_need_the_token(tmp_path: Path) -> None:
    with pytest.raises(OpenAddressError):
        AlertServer(Responder(tmp_path, Listeners(), 60, 2, print), "0.0.0.0", 0, None)
