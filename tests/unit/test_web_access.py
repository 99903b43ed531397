import pytest
from flask import Flask
from flask.testing import FlaskClient

from neuron_tools.web_access import REFUSAL, Access, new_token, protect

HOST = "127.0.0.1:3001"


@pytest.fixture
def client() -> FlaskClient:
    server = Flask("test")
    protect(server, Access("neuron-explorer", 3001, "right", ("'sha256-abc'",)))
    server.add_url_rule("/", "secret", lambda: "secret")
    server.add_url_rule("/change", "change", lambda: "changed", methods=["POST"])
    return server.test_client()


def get(client: FlaskClient, path: str = "/", host: str = HOST, **headers: str):
    return client.get(path, base_url=f"http://{host}", headers=headers)


def test_the_printed_address_lets_in_and_the_cookie_keeps_in(client: FlaskClient) -> None:
    first = get(client, "/?token=right&file=a%26b")
    assert (first.status_code, first.headers["Location"]) == (302, "/?file=a%26b")
    cookie = first.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert get(client).text == "secret"


@pytest.mark.parametrize(
    "path", ["/", "/?token=", "/?token=wrong", "/?token=RIGHT", "/?token=%C3%A9", "/nowhere"]
)
def test_without_the_token_nothing_is_told(client: FlaskClient, path: str) -> None:
    answer = get(client, path)
    assert (answer.status_code, answer.text) == (403, REFUSAL.format(program="neuron-explorer"))


def test_a_program_sends_the_token_with_each_request(client: FlaskClient) -> None:
    answer = get(client, Authorization="Bearer right")
    assert (answer.status_code, answer.text) == (200, "secret")
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer", "Basic right", "right", "Bearer r\u00efght"])
def test_a_wrong_authorization_is_refused(client: FlaskClient, header: str) -> None:
    assert get(client, Authorization=header).status_code == 403


def test_a_wrong_cookie_is_refused(client: FlaskClient) -> None:
    assert get(client, Cookie="neuron-explorer-3001=wrong").status_code == 403
    assert get(client, Cookie="neuron-explorer-3002=right").status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:3001", "127.0.0.1:3002", "127.0.0.1", "127.0.0.1.evil:3001"]
)
def test_another_host_name_is_refused_even_with_the_token(client: FlaskClient, host: str) -> None:
    assert get(client, "/?token=right", host).status_code == 403


def test_localhost_is_this_server(client: FlaskClient) -> None:
    assert get(client, "/?token=right", "localhost:3001").status_code == 302


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:3001", "http://127.0.0.1:3002"]
)
def test_requests_from_other_sites_are_refused(client: FlaskClient, origin: str) -> None:
    get(client, "/?token=right")
    assert client.post("/change", base_url=f"http://{HOST}", headers={"Origin": origin}).status_code == 403


def test_requests_from_our_own_pages_pass(client: FlaskClient) -> None:
    get(client, "/?token=right")
    answer = client.post("/change", base_url=f"http://{HOST}", headers={"Origin": f"http://{HOST}"})
    assert answer.text == "changed"


@pytest.mark.parametrize("path", ["/", "/?token=right"])
def test_every_answer_carries_the_policy(client: FlaskClient, path: str) -> None:
    headers = get(client, path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self' 'sha256-abc'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_tokens_are_long_and_never_the_same() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 32


def test_the_token_does_not_show_in_logs() -> None:
    assert "right" not in repr(Access("neuron-explorer", 3001, "right"))


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("path", "mode", "status"),
    [
        ("/", "navigate", 200),
        ("/download/query?sql=SELECT+1", "navigate", 403),
        ("/data/x/tracks", "navigate", 403),
        ("/api/editor/profiles", "no-cors", 403),
        ("/", "no-cors", 403),
    ],
)
def test_another_site_opens_pages_only(
    client: FlaskClient, site: str, path: str, mode: str, status: int
) -> None:
    get(client, "/?token=right")
    answer = get(client, path, **{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode})
    assert answer.status_code == status


def test_a_line_break_in_the_path_is_refused(client: FlaskClient) -> None:
    assert get(client, "/a%0d%0aX: y?token=right").status_code == 400


def test_the_address_for_a_browser_lets_this_user_in_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    access = Access("neuron-explorer", 3001, "right")
    opened = access.opening_url(access.url)
    assert "right" not in opened
    server = Flask("test")
    protect(server, access)
    server.add_url_rule("/", "secret", lambda: "secret")
    peers = iter([False, True])
    monkeypatch.setattr("neuron_tools.web_access.is_of_this_user", lambda *peer: next(peers))
    path = opened.removeprefix(f"http://{HOST}")
    refused, admitted = (get(server.test_client(), path) for _ in range(2))
    assert (refused.status_code, admitted.status_code) == (403, 302)
    assert admitted.headers["Location"] == "/"
