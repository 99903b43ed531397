"""Who gets an answer from the Explorer, and what a request can reach."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_explorer.server import make_guarded_server
from neuron_explorer.user_store import UserStore
from neuron_tools.web_access import Access

BASE = "http://127.0.0.1:3001"
ROUTES = ("/", "/overview", "/_dash-layout", "/_dash-dependencies", "/assets/explorer.js", "/download/query")


@pytest.fixture
def profile(make_profile) -> Path:
    return make_profile()


@pytest.fixture
def stranger(profile: Path, tmp_path: Path) -> Iterator[FlaskClient]:
    """A client that has not shown the token."""
    with ProfileLibrary([profile]) as library:
        access = Access("neuron-explorer", 3001, "right")
        yield make_guarded_server(library, access, UserStore(tmp_path / "store")).test_client()


@pytest.fixture
def client(stranger: FlaskClient) -> FlaskClient:
    """A client that was let in."""
    assert stranger.get("/?token=right", base_url=BASE).status_code == 302
    return stranger


@pytest.mark.parametrize("path", [*ROUTES, "/data/x/tracks", "/api/profiles"])
@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong", "?token=right%00"])
def test_without_the_token_nothing_is_answered(stranger: FlaskClient, path: str, query: str) -> None:
    assert stranger.get(path + query, base_url=BASE).status_code == 403


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    "host", ["evil.example:3001", "127.0.0.1:3002", "evil.example", "localhost.evil:3001"]
)
def test_another_host_name_is_refused_also_with_the_cookie(client: FlaskClient, path: str, host: str) -> None:
    assert client.get(path, base_url=BASE, headers={"Host": host}).status_code == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:3002", "null", "https://127.0.0.1:3001"]
)
def test_another_origin_is_refused(client: FlaskClient, origin: str) -> None:
    for path in ("/upload?name=x", "/_dash-update-component"):
        assert client.post(path, base_url=BASE, headers={"Origin": origin}).status_code == 403


def test_the_policy_lets_no_inline_script_and_no_other_server_in(client: FlaskClient) -> None:
    answer = client.get("/overview", base_url=BASE)
    policy = answer.headers["Content-Security-Policy"]
    scripts = re.search(r"script-src ([^;]*)", policy)
    assert scripts is not None
    assert not re.search(r"unsafe|http|\*|strict-dynamic", scripts[1])
    assert "frame-ancestors 'none'" in policy
    inline = re.findall(
        r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>(.*?)</script>", answer.text, re.DOTALL
    )
    assert inline
    for script in inline:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in scripts[1]
    loaded = re.findall(r'<(?:script|link)[^>]*(?:src|href)="(?!data:image/svg)([^"]*)"', answer.text)
    assert loaded
    assert all(address.startswith("/") and not address.startswith("//") for address in loaded)


@pytest.mark.parametrize("wanted", ["../../etc", "/etc", "%2e%2e%2f", "x\0y", ""])
def test_a_profile_is_named_by_its_id_only(client: FlaskClient, wanted: str) -> None:
    for path in ("/download/query?sql=SELECT+1", "/download/rows/operations?x=1"):
        answer = client.get(f"{path}&profile={wanted}", base_url=BASE)
        assert (answer.status_code, answer.mimetype) == (400, "text/plain")


@pytest.mark.parametrize(
    "path", ["/assets/../server.py", "/assets/%2e%2e/server.py", "/download/export/..%2f1"]
)
def test_paths_do_not_leave_their_folder(client: FlaskClient, path: str) -> None:
    answer = client.get(path, base_url=BASE)
    assert "make_guarded_server" not in answer.text
    assert answer.status_code in (200, 400, 404)


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE Instruction",
        "CREATE TABLE x AS SELECT 1",
        "COPY Instruction TO '/tmp/stolen.csv'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT content FROM read_text('/etc/passwd')",
        "ATTACH '/tmp/other.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "SELECT 1; SELECT 2",
        "SELECT getenv('HOME')",
    ],
)
def test_sql_that_writes_or_reaches_out_is_refused(client: FlaskClient, profile: Path, sql: str) -> None:
    answer = client.get(
        "/download/query", query_string={"profile": profile_id(profile), "sql": sql}, base_url=BASE
    )
    assert (answer.status_code, answer.mimetype) == (400, "text/plain")
    assert answer.text.count("\n") == 1


def test_a_gigantic_result_is_cut(client: FlaskClient, profile: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("neuron_explorer.downloads.MOST_ROWS", 5_000)
    sql = "SELECT a.range AS n FROM range(1000000000) a"
    answer = client.get(
        "/download/query", query_string={"profile": profile_id(profile), "sql": sql}, base_url=BASE
    )
    assert len(answer.text.splitlines()) == 5_001


def test_a_spreadsheet_does_not_run_what_a_profile_names(client: FlaskClient, profile: Path) -> None:
    sql = "SELECT '=cmd()' AS a, '@x' AS b, -1 AS c"
    answer = client.get(
        "/download/query", query_string={"profile": profile_id(profile), "sql": sql}, base_url=BASE
    )
    assert answer.text.splitlines() == ["a,b,c", "'=cmd(),'@x,-1"]


def test_an_upload_cannot_choose_where_it_is_written(client: FlaskClient, tmp_path: Path) -> None:
    answer = client.post(
        "/upload?name=../../../evil.json", data=b"{}", base_url=BASE, headers={"Origin": BASE}
    )
    assert answer.json["title"] == "evil.nprof"
    assert not (tmp_path.parent / "evil.json").exists()


def test_a_source_file_is_never_read_from_the_disk(make_profile, tiny_tables, tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("the secret\n")
    source = {"path": [str(secret)], "sha256": ["00"], "text": [None]}
    names = {**tiny_tables["StackFrameFileName"], "name": [str(secret)]}
    path = make_profile(tables={**tiny_tables, "SourceFile": source, "StackFrameFileName": names})
    from neuron_explorer.source_costs import source_text
    from neuron_tools import open_profile

    with open_profile(path) as opened:
        assert source_text(opened, str(secret)) == []
    with ProfileLibrary([path]) as library:
        server = make_guarded_server(
            library, Access("neuron-explorer", 3001, "right"), UserStore(tmp_path / "s")
        )
        client = server.test_client()
        client.get("/?token=right", base_url=BASE)
        shown = json.dumps(page(client, f"/source?profile={profile_id(path)}&file={secret}").json)
    assert "the secret" not in shown


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/_dash-component-suites/dash/../x", 404),
        ("/_dash-component-suites/nothing/x.js", 404),
        ("/a%0d%0ab?token=right", 400),
        ("/download/rows/operations?grid=" + "[" * 5000, 400),
        ("/api/editor/profiles/%00/summary", 400),
    ],
)
def test_a_malformed_address_is_refused(client: FlaskClient, path: str, status: int) -> None:
    assert client.get(path, base_url=BASE).status_code == status


@pytest.mark.parametrize(
    "body",
    [
        "[" * 20_000,
        '{"a":' * 20_000,
        '"\\ud800"',
        "{}",
        "[]",
        "null",
        "",
        '{"output":"..\\ud800..","inputs":[]}',
        '{"output":"window-title.modified_timestamp","inputs":[]}',
        '{"output":"tag-answer.children","inputs":[{"id":"x"}]}',
        '{"output":"tag-answer.children","outputs":[{"id":"x"}],"inputs":[]}',
        '{"output":"tag-answer.children","outputs":{"id":"x","property":"y"},"inputs":[],"changedPropIds":[1]}',
    ],
)
@pytest.mark.parametrize("path", ["/_dash-update-component", "/api/editor/profiles"])
def test_a_malformed_body_is_refused(client: FlaskClient, path: str, body: str) -> None:
    headers = {"Origin": BASE, "Authorization": "Bearer right"}
    answer = client.post(path, data=body, content_type="application/json", base_url=BASE, headers=headers)
    assert answer.status_code in (400, 404)


@pytest.mark.parametrize("name", ["%00", "..", "%2e%2e", ""])
def test_an_upload_without_a_name_has_one(client: FlaskClient, name: str) -> None:
    answer = client.post(f"/upload?name={name}", data=b"{}", base_url=BASE, headers={"Origin": BASE})
    assert answer.json["title"].startswith("trace")


def page(client: FlaskClient, address: str) -> Any:
    """The answer of the callback that draws a page."""
    pathname, _, search = address.partition("?")
    values = {"pathname": pathname, "search": f"?{search}", "hash": ""}
    outputs = [("page", "children"), ("page", "className"), ("navigation", "children"),
               ("heading", "children"),
               ("window-title", "data"), ("steps", "children"), ("shown", "data")]  # fmt: skip
    body = {
        "output": ".." + "...".join(".".join(output) for output in outputs) + "..",
        "outputs": [{"id": name, "property": part} for name, part in outputs],
        "inputs": [{"id": "address", "property": name, "value": value} for name, value in values.items()],
        "state": [{"id": "shown", "property": "data", "value": None}],
        "changedPropIds": ["address.pathname"],
    }
    answer = client.post("/_dash-update-component", json=body, base_url=BASE, headers={"Origin": BASE})
    assert answer.status_code == 200
    return answer


def test_no_page_sends_html_of_a_profile(make_profile, tiny_tables, tmp_path: Path) -> None:
    script = "<script>alert(1)</script>"
    framework = {**tiny_tables["FrameworkInstruction"], "framework_name": [script] * 3}
    path = make_profile(tables={**tiny_tables, "FrameworkInstruction": framework})
    with ProfileLibrary([path]) as library:
        access = Access("neuron-explorer", 3001, "right")
        client = make_guarded_server(library, access, UserStore(tmp_path / "s")).test_client()
        client.get("/?token=right", base_url=BASE)
        for name in ("/overview", "/hierarchy", "/operators", "/roofline"):
            answer = page(client, f"{name}?profile={profile_id(path)}")
            assert answer.mimetype == "application/json"
            assert "dangerously" not in answer.text
            assert not [text for text in figure_texts(answer.json) if "<script" in text]


def figure_texts(value: Any, inside: bool = False) -> list[str]:
    """All texts below the figures of an answer."""
    if isinstance(value, dict):
        return [text for key, part in value.items() for text in figure_texts(part, inside or key == "figure")]
    if isinstance(value, list):
        return [text for part in value for text in figure_texts(part, inside)]
    return [value] if inside and isinstance(value, str) else []
