"""The JSON routes for editors, on a profile with known sums."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from flask import Flask
from flask.testing import FlaskClient

from neuron_explorer.api.routes import PREFIX, register
from neuron_explorer.library import ProfileLibrary
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_tools.web_access import Access, protect
from tests.unit.neuron_profile.tiny_profile import SOURCE, SOURCE_PATH

HOSTILE = '"><script>alert(1)</script>\u202e' + "x" * 50_000


@pytest.fixture
def client(make_profile: Any) -> Iterator[FlaskClient]:
    with ProfileLibrary([make_profile()]) as library:
        yield client_of(library)


def client_of(library: ProfileLibrary) -> FlaskClient:
    server = Flask("test")
    register(server, library)
    return server.test_client()


def guarded_client_of(library: ProfileLibrary) -> FlaskClient:
    server = Flask("test")
    register(server, library)
    protect(server, Access("neuron-explorer", 3001, "right"))
    client = server.test_client()
    client.set_cookie("neuron-explorer-3001", "right", domain="localhost")
    return client


def profile_url(client: FlaskClient) -> str:
    (entry,) = client.get(f"{PREFIX}/profiles").get_json()
    return f"{PREFIX}/profiles/{entry['id']}"


def view(client: FlaskClient, name: str) -> Any:
    answer = client.get(f"{profile_url(client)}/{name}")
    assert answer.status_code == 200, answer.text
    return answer.get_json()


def test_sources_have_hashes_and_the_profile_its_size(client: FlaskClient) -> None:
    sources = view(client, "sources")
    assert [file["path"] for file in sources["files"]] == [SOURCE_PATH]
    assert sources["files"][0]["sha256"]
    assert sources["instructions"] == 5
    assert view(client, f"source?path={SOURCE_PATH}")["text"] == SOURCE


def test_lines_are_charged_as_in_the_summary(client: FlaskClient) -> None:
    answer = view(client, f"lines?path={SOURCE_PATH}")
    lines = {row["line"]: row for row in answer["lines"]}
    assert {line: row["device_ns"] for line, row in lines.items()} == pytest.approx({2: 100, 3: 50})
    assert lines[3]["backward_ns"] == pytest.approx(20)
    assert lines[3]["calls"] == 2
    assert lines[3]["engine_ns"] == {"Tensor": 40, "Scalar": 30}
    assert lines[2]["instructions"] == 3
    assert lines[2]["total"]["share"] == pytest.approx(0.75)  # line 3 was called from it


def test_lines_of_a_range_have_what_lies_in_it(client: FlaskClient) -> None:
    answer = view(client, f"lines?path={SOURCE_PATH}&start_ns=1200&end_ns=1300")
    assert answer["device_ns"] == pytest.approx(100)
    assert {row["line"]: row["device_ns"] for row in answer["lines"]} == pytest.approx({2: 0, 3: 50})
    whole = view(client, f"lines?path={SOURCE_PATH}")
    assert whole["device_ns"] == pytest.approx(200)
    empty = client.get(f"{profile_url(client)}/lines?path={SOURCE_PATH}&start_ns=5&end_ns=5")
    assert empty.status_code == 400
    assert "is empty" in empty.get_json()["error"]


def test_a_file_that_did_not_run_has_no_lines(client: FlaskClient) -> None:
    assert view(client, "lines?path=/etc/passwd")["lines"] == []
    answer = client.get(f"{profile_url(client)}/source?path=/etc/passwd")
    assert (answer.status_code, answer.get_json()) == (
        404,
        {"error": "The profile does not keep this file."},
    )


def test_the_hierarchy_is_a_tree_of_modules(client: FlaskClient) -> None:
    (model,) = view(client, "hierarchy")["modules"]["children"]
    assert [(child["name"], child["device_ns"]) for child in model["children"]] == [
        ("a", pytest.approx(130)),
        ("b", pytest.approx(20)),
    ]


def test_a_query_answers_plain_values(client: FlaskClient) -> None:
    sql = "SELECT engine, sum(duration_ns) AS busy FROM Instruction GROUP BY engine ORDER BY engine"
    answer = client.post(f"{profile_url(client)}/query", json={"sql": sql}).get_json()
    assert answer == {
        "columns": ["engine", "busy"],
        "rows": [["Scalar", 30], ["Sync", 2], ["Tensor", 80], ["Vector", 30]],
        "row_count": 4,
    }


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DROP TABLE Instruction", "read-only"),
        ("SELECT * FROM read_text('/etc/passwd')", "tables only"),
        ("SELECT 1; SELECT 2", "One query"),
    ],
)
def test_a_query_only_reads(client: FlaskClient, sql: str, reason: str) -> None:
    answer = client.post(f"{profile_url(client)}/query", json={"sql": sql})
    assert answer.status_code == 400
    assert reason in answer.get_json()["error"]


@pytest.mark.parametrize("body", [None, [], {"sql": 7}, {}])
def test_a_request_without_its_text_is_refused(client: FlaskClient, body: Any) -> None:
    answer = client.post(f"{profile_url(client)}/query", json=body)
    assert (answer.status_code, answer.get_json()) == (400, {"error": "The request lacks the text 'sql'."})


def test_a_profile_is_added_only_by_who_sends_the_token_in_the_header(make_profile: Any) -> None:
    path = make_profile()
    with ProfileLibrary() as library:
        client, at = guarded_client_of(library), "http://localhost:3001"
        for header in ({}, {"Authorization": "Bearer junk"}, {"Authorization": "Bearer "}):
            refused = client.post(f"{PREFIX}/profiles", json={"path": str(path)}, headers=header, base_url=at)
            assert refused.status_code == 403
        headers = {"Authorization": "Bearer right"}
        answer = client.post(f"{PREFIX}/profiles", json={"path": str(path)}, headers=headers, base_url=at)
        added = answer.get_json()
        assert added["location"] == str(Path(path).resolve())
        listed = client.get(f"{PREFIX}/profiles", base_url=at).get_json()
        assert [entry["id"] for entry in listed] == [added["id"]]


def test_what_is_no_profile_is_one_sentence(client: FlaskClient, tmp_path: Path) -> None:
    headers = {"Authorization": "Bearer right"}
    with ProfileLibrary() as library:
        guarded = guarded_client_of(library)
        for path, told in (
            (str(tmp_path / "none"), "does not exist"),
            ("a\0b", "no file"),
            ("a" * 5000, "long"),
        ):
            answer = guarded.post(
                f"{PREFIX}/profiles", json={"path": path}, headers=headers, base_url="http://localhost:3001"
            )
            assert answer.status_code == 400
            assert told in answer.get_json()["error"]
    unknown = client.get(f"{PREFIX}/profiles/0123456789ab/sources")
    assert unknown.status_code == 404


def test_an_export_is_a_trace_and_leaves_no_file(
    client: FlaskClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with client.get(f"{profile_url(client)}/export/perfetto") as answer:
        assert answer.status_code == 200
        assert len(answer.data) > 100
    assert list(folder.iterdir()) == []
    assert client.get(f"{profile_url(client)}/export/exe").status_code == 400


def test_two_profiles_are_compared(client: FlaskClient) -> None:
    (entry,) = client.get(f"{PREFIX}/profiles").get_json()
    answer = client.get(f"{PREFIX}/compare?base={entry['id']}&new={entry['id']}").get_json()
    assert answer["delta_device_ns"] == 0


def test_hostile_texts_stay_texts(make_profile: Any, tiny_tables: Any) -> None:
    framework = {**tiny_tables["FrameworkInstruction"], "framework_name": [HOSTILE] * 3}
    with ProfileLibrary([make_profile(tables={**tiny_tables, "FrameworkInstruction": framework})]) as library:
        client = client_of(library)
        answer = client.get(f"{profile_url(client)}/hierarchy")
        assert answer.mimetype == "application/json"
        assert answer.get_json()["operations"][0]["name"] == HOSTILE
        sql = "SELECT framework_name FROM FrameworkInstruction LIMIT 1"
        rows = client.post(f"{profile_url(client)}/query", json={"sql": sql}).get_json()["rows"]
        assert len(rows[0][0]) < 5000


def test_a_span_leads_to_its_stack(client: FlaskClient) -> None:
    answer = view(client, f"span?track={quote('p0/core0/framework')}&row=0")
    assert answer["stack"][0] == {"file": SOURCE_PATH, "line": 2, "function": "main"}
    missing = client.get(f"{profile_url(client)}/span?track=nowhere&row=0")
    assert missing.status_code == 400


def test_spans_of_lines_name_their_tracks(client: FlaskClient) -> None:
    answer = view(client, f"spans?path={SOURCE_PATH}&first=2&last=3")
    assert answer["truncated"] is False
    assert all(row["track"].startswith("p") for row in answer["spans"])


def test_the_edit_of_a_finding_is_made_of_the_captured_text(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("libcst")
    unused = Finding("unused_outputs", "spare is never read", "Leave it out.", Place(SOURCE_PATH, 2))
    monkeypatch.setattr("neuron_profile.analysis.advice.advise.advise", lambda profile: (unused,))
    monkeypatch.setattr(
        "neuron_profile.fix.propose.SourceTexts.text",
        lambda texts, file: "def f(x):\n    spare = x @ x\n    return x\n",
    )
    profile = profile_url(client)
    assert client.get(f"{profile}/findings").json[0]["has_editor"] is True
    answer = client.get(f"{profile}/edit", query_string={"finding": "1"}).json
    assert answer["text"] == "def f(x):\n    return x\n"
    assert client.get(f"{profile}/edit", query_string={"finding": "2"}).status_code == 400
