"""An Explorer that several people share: who is let in, what is kept apart, and what nobody may."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import time
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from flask import Flask, jsonify, redirect, request
from flask.testing import FlaskClient
from joserfc import jwt
from joserfc.jwk import RSAKey
from werkzeug.serving import make_server

from neuron_explorer.library import ProfileLibrary
from neuron_explorer.server import make_guarded_server
from neuron_explorer.sharing import NotSharedError, SharedStore, Sharing
from neuron_explorer.sign_in import SignIn, SignInFileError, read_sign_in
from neuron_explorer.users import ProxiedUsers
from neuron_tools.web_access import Access, Users

BASE = "http://127.0.0.1:3001"
HEADER = "X-Forwarded-User"

Make = Callable[[Sharing, Users | None], FlaskClient]


@pytest.fixture
def profile(make_profile) -> Path:
    return make_profile()


@pytest.fixture
def make(profile: Path, tmp_path: Path) -> Iterator[Make]:
    """Makes a client of a shared Explorer."""
    with ExitStack() as stack:

        def made(sharing: Sharing, users: Users | None) -> FlaskClient:
            library = stack.enter_context(ProfileLibrary([profile]))
            store = SharedStore(sharing, tmp_path / "store")
            access = Access("neuron-explorer", 3001, "right", users=users)
            return make_guarded_server(library, access, store, sharing=sharing).test_client()

        yield made


def asked_by(user: str, token: str = "right") -> dict[str, str]:
    """Headers with which a proxy passes on a request of a user."""
    return {HEADER: user, "Authorization": f"Bearer {token}"}


def test_a_proxy_with_the_token_names_the_user(make: Make) -> None:
    client = make(Sharing(has_users=True), ProxiedUsers(HEADER, "right"))
    assert client.get("/", base_url=BASE, headers=asked_by("ann")).status_code == 200
    for headers in (
        {HEADER: "ann"},
        asked_by("ann", "wrong"),
        asked_by(" "),
        {"Authorization": "Bearer right"},
    ):
        refused = client.get("/", base_url=BASE, headers=headers)
        assert (refused.status_code, refused.text.count("\n")) == (403, 1)
    assert client.get("/?token=right", base_url=BASE).status_code == 403


def test_another_site_cannot_use_what_the_proxy_grants(make: Make) -> None:
    client = make(Sharing(has_users=True), ProxiedUsers(HEADER, "right"))
    led = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/overview", base_url=BASE, headers=asked_by("ann") | led).status_code == 200
    assert client.get("/download/query", base_url=BASE, headers=asked_by("ann") | led).status_code == 403
    assert (
        client.post("/upload", base_url=BASE, headers=asked_by("ann") | {"Origin": "http://x"}).status_code
        == 403
    )


def test_users_name_no_files_of_the_server(make: Make, profile: Path) -> None:
    client = make(Sharing(has_users=True), ProxiedUsers(HEADER, "right"))
    answer = client.post(
        "/api/editor/profiles", base_url=BASE, headers=asked_by("ann"), json={"path": str(profile)}
    )
    assert answer.status_code == 403
    assert "not yours to add" in answer.json["error"]


def test_each_user_has_tags_of_their_own(tmp_path: Path) -> None:
    server, store = Flask("test"), SharedStore(Sharing(has_users=True), tmp_path)
    from flask import g

    for user, tags in (("ann", ["fast"]), ("../ben", ["slow"])):
        with server.app_context():
            g.user = user
            store.set_tags("a", tags)
            assert store.folder.parent == tmp_path / "users"
    with server.app_context():
        g.user = "ann"
        assert store.tags("a") == ("fast",)
    assert store.tags("a") == ()


def test_nobody_deletes_what_somebody_else_imported(profile: Path, tmp_path: Path) -> None:
    sharing = Sharing(has_users=True)
    with pytest.raises(NotSharedError, match="not yours to delete"):
        sharing.require_own(profile, SharedStore(sharing, tmp_path / "store"))
    sharing.require_own(tmp_path / "store/imports/a.nprof", SharedStore(sharing, tmp_path / "store"))


def test_an_explorer_that_only_shows_takes_in_removes_and_remembers_nothing(
    make: Make, profile: Path, tmp_path: Path
) -> None:
    sharing = Sharing(is_read_only=True)
    client = make(sharing, None)
    header = {"Authorization": "Bearer right"}
    for refused in (
        client.post("/upload?name=a.json", base_url=BASE, headers=header, data=b"{}"),
        client.post("/api/editor/profiles", base_url=BASE, headers=header, json={"path": str(profile)}),
    ):
        assert refused.status_code == 403
        assert "--read-only" in refused.text
    assert client.get("/", base_url=BASE, headers=header).status_code == 200
    store = SharedStore(sharing, tmp_path / "store")
    for remember in (lambda: store.set_tags("a", ["x"]), lambda: store.save_query("a", "SELECT 1")):
        with pytest.raises(NotSharedError):
            remember()
    assert not (tmp_path / "store").exists()
    assert profile.is_dir()


def provider(claims: dict[str, object]) -> Flask:
    """A provider of OpenID Connect in which everybody is signed in already, as who the claims say."""
    server, key, nonces = Flask("provider"), RSAKey.generate_key(2048, {"kid": "1"}), {}

    @server.get("/.well-known/openid-configuration")
    def configuration():
        here = request.host_url.rstrip("/")
        return jsonify(
            issuer=here, authorization_endpoint=f"{here}/authorize", token_endpoint=f"{here}/token",
            jwks_uri=f"{here}/keys", id_token_signing_alg_values_supported=["RS256"],
        )  # fmt: skip

    @server.get("/authorize")
    def authorize():
        assert request.args["code_challenge_method"] == "S256"
        nonces["code"] = request.args["nonce"]
        back = urlencode({"code": "code", "state": request.args["state"]})
        return redirect(f"{request.args['redirect_uri']}?{back}")

    @server.post("/token")
    def token():
        assert request.form["code_verifier"]
        now = int(time())
        told = {
            "iss": request.host_url.rstrip("/"), "aud": "explorer", "sub": "1", "iat": now, "exp": now + 60,
            "nonce": nonces[request.form["code"]], **claims,
        }  # fmt: skip
        text = jwt.encode({"alg": "RS256", "kid": "1"}, told, key)
        return jsonify(access_token="x", token_type="Bearer", id_token=text)

    @server.get("/keys")
    def keys():
        return jsonify(keys=[key.as_dict(private=False)])

    return server


@pytest.fixture
def issuer() -> Iterator[Callable[[dict[str, object]], str]]:
    """Starts a provider; its address."""
    servers = []

    def start(claims: dict[str, object]) -> str:
        server = make_server("127.0.0.1", 0, provider(claims), threaded=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()


def come_back(client: FlaskClient, page: str) -> object:
    """What a browser gets that opens a page, is led to the provider, and comes back."""
    assert client.get(page, base_url=BASE).location == "/sign-in"
    there = client.get("/sign-in", base_url=BASE).location
    import requests

    back = requests.get(there, allow_redirects=False, timeout=10).headers["Location"]
    return client.get("/sign-in/return", base_url=BASE, query_string=parse_qs(urlsplit(back).query))


def signing_in(issuer: str) -> SignIn:
    return SignIn(issuer, "explorer", "secret", ("ann@example.com", "@team.example"), BASE)


@pytest.mark.parametrize("address", ["ann@example.com", "Ben@Team.example"])
def test_who_signs_in_comes_back_to_the_page(make: Make, issuer, address: str) -> None:
    url = issuer({"email": address, "email_verified": True})
    client = make(Sharing(has_users=True), signing_in(url))
    answer = come_back(client, "/overview?profile=x")
    assert (answer.status_code, answer.location) == (302, "/overview?profile=x")
    assert client.get("/overview", base_url=BASE).status_code == 200


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "eve@evil.example", "email_verified": True},
        {"email": "ann@example.com"},
        {"email": "ann@example.com", "email_verified": "true"},
        {"email": "eve@notteam.example", "email_verified": True},
        {"email": "ann@example.com", "email_verified": True, "aud": "another"},
        {"email": "ann@example.com", "email_verified": True, "exp": 5},
        {"email": "ann@example.com", "email_verified": True, "nonce": "old"},
        {"email": "ann@example.com", "email_verified": True, "iss": "https://evil.example"},
    ],
)
def test_whom_the_file_does_not_name_or_the_provider_does_not_confirm_stays_outside(
    make: Make, issuer, claims: dict[str, object]
) -> None:
    client = make(Sharing(has_users=True), signing_in(issuer(claims)))
    answer = come_back(client, "/overview")
    assert answer.status_code in (403, 502)
    assert answer.text.count("\n") == 1
    assert client.get("/overview", base_url=BASE).status_code == 302


def test_without_signing_in_there_is_no_data(make: Make) -> None:
    client = make(Sharing(has_users=True), signing_in("http://127.0.0.1:9"))
    for path in ("/data/x/tracks", "/api/editor/profiles", "/download/query"):
        assert client.get(path, base_url=BASE).status_code == 401
    assert client.post("/upload", base_url=BASE).status_code == 401
    refused = client.get("/sign-in", base_url=BASE)
    assert (refused.status_code, refused.text.count("\n")) == (502, 1)
    assert client.get("/sign-in/return?code=x&state=y", base_url=BASE).status_code == 502


def test_the_file_says_where_users_sign_in(tmp_path: Path) -> None:
    file, secret = tmp_path / "sign-in.toml", tmp_path / "secret"
    secret.write_text("hidden\n")
    names = 'issuer = "https://a.example/"\nclient_id = "b"\nusers = ["Ann@x.example"]'
    whole = f'{names}\nclient_secret_file = "{secret}"'
    file.write_text(whole)
    read = read_sign_in(str(file), (), BASE)
    assert (read.issuer, read.client_secret, read.users, read.origin) == (
        "https://a.example", "hidden", ("ann@x.example",), BASE,
    )  # fmt: skip
    for content, told in (
        ("issuer = 1", "no issuer and no client_id"), ("[", "no valid TOML"),
        (whole.replace("users", "people"), "names nobody"),
        (whole.replace('["Ann@x.example"]', "[]"), "names nobody"),
        (whole.replace(str(secret), "/nowhere"), "cannot be read"),
    ):  # fmt: skip
        file.write_text(content)
        with pytest.raises(SignInFileError, match=told):
            read_sign_in(str(file), (), BASE)
    with pytest.raises(SignInFileError, match="cannot be read"):
        read_sign_in(str(tmp_path / "missing"), (), BASE)
