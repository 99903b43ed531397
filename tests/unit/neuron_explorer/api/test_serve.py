"""The server of an editor's window: its routes, and its pages under the address that a proxy gives it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client, TestResponse

from neuron_explorer.api.public_address import PublicAddress, parse_address
from neuron_explorer.api.serve import make_application
from neuron_explorer.library import ProfileLibrary
from neuron_tools.errors import UsageError
from neuron_tools.web_access import Access
from tests.unit.neuron_profile.tiny_profile import make_profile, tiny_tables

__all__ = ["make_profile", "tiny_tables"]
HERE = "http://127.0.0.1:3001"
THERE = "https://editor.example"
TOKEN = {"Authorization": "Bearer right"}
Get = Callable[..., TestResponse]


@pytest.fixture
def library(make_profile: Callable[..., Path]) -> Iterator[ProfileLibrary]:
    with ProfileLibrary([make_profile()]) as found:
        yield found


@pytest.fixture
def client(library: ProfileLibrary) -> Client:
    application: Any = make_application(library, Access("neuron-explorer", 3001, "right"))
    return Client(application)


@pytest.fixture
def shown(client: Client) -> Client:
    """The same, shown by a proxy below a path."""
    answer = client.post(
        "/api/editor/public", base_url=HERE, headers=TOKEN, json={"url": f"{THERE}/proxy/3001/"}
    )
    assert answer.status_code == 200
    return client


def prefix(page: TestResponse) -> str:
    """What the application puts before the paths that it asks for."""
    found = re.search(r'id="_dash-config"[^>]*>(.*?)</script>', page.text)
    assert found is not None
    return str(json.loads(found.group(1))["requests_pathname_prefix"])


def test_editors_and_browsers_are_answered(client: Client) -> None:
    assert client.get("/api/editor/profiles", base_url=HERE, headers=TOKEN).status_code == 200
    page = client.get("/overview", base_url=HERE, headers=TOKEN)
    assert prefix(page) == "/"


def test_pages_behind_a_proxy_load_from_below_its_path(shown: Client) -> None:
    page = shown.get("//overview", base_url=THERE, headers=TOKEN)
    assert page.status_code == 200
    assert prefix(page) == "/proxy/3001/"
    assert 'src="/_dash' not in page.text
    assert 'src="/proxy/3001/_dash' in page.text


def test_the_token_leads_on_below_the_proxys_path(shown: Client) -> None:
    answer = shown.get("/overview?profile=x&token=right", base_url=THERE)
    assert (answer.status_code, answer.headers["Location"]) == (302, "./overview?profile=x")


def test_links_behind_a_proxy_stay_below_its_path(shown: Client, library: ProfileLibrary) -> None:
    (entry,) = library.entries()
    wanted = {
        "output": "..page.children...page.className...navigation.children...heading.children"
        "...window-title.data...steps.children...shown.data..",
        "outputs": [
            {"id": "page", "property": "children"},
            {"id": "page", "property": "className"},
            {"id": "navigation", "property": "children"},
            {"id": "heading", "property": "children"},
            {"id": "window-title", "property": "data"},
            {"id": "steps", "property": "children"},
            {"id": "shown", "property": "data"},
        ],
        "inputs": [
            {"id": "address", "property": "pathname", "value": "/proxy/3001/overview"},
            {"id": "address", "property": "search", "value": f"?profile={entry.id}"},
            {"id": "address", "property": "hash", "value": ""},
        ],
        "state": [{"id": "shown", "property": "data", "value": None}],
        "changedPropIds": ["address.pathname"],
    }
    headers = {**TOKEN, "Origin": THERE}
    answer = shown.post("/_dash-update-component", base_url=THERE, headers=headers, json=wanted)
    assert answer.status_code == 200
    links = re.findall(r'"href": "(/[^"]*)"', json.dumps(answer.get_json()))
    assert f"/proxy/3001/timeline?profile={entry.id}" in links
    assert [link for link in links if not link.startswith("/proxy/3001/")] == []


def test_only_the_told_host_and_its_pages_are_answered(shown: Client) -> None:
    assert shown.get("/overview", base_url="https://other.example", headers=TOKEN).status_code == 403
    foreign = {**TOKEN, "Origin": "https://other.example"}
    assert shown.get("/overview", base_url=THERE, headers=foreign).status_code == 403
    assert shown.get("/overview", base_url=THERE).status_code == 403


def test_only_programs_with_the_token_tell_addresses(client: Client) -> None:
    wanted = {"url": f"{THERE}/"}
    assert client.post("/api/editor/public", base_url=HERE, json=wanted).status_code == 403
    by_cookie = {"Cookie": "neuron-explorer-3001=right"}
    assert client.post("/api/editor/public", base_url=HERE, json=wanted, headers=by_cookie).status_code == 403
    answer = client.post("/api/editor/public", base_url=HERE, json={"url": "file:///etc"}, headers=TOKEN)
    assert answer.status_code == 400


def test_an_address_has_an_origin_and_perhaps_a_path() -> None:
    assert parse_address("https://a.example:8443/proxy/31/") == PublicAddress(
        "https://a.example:8443", "/proxy/31"
    )
    assert parse_address("http://localhost:54321").host == "localhost:54321"


@pytest.mark.parametrize("text", ["", "a.example", "file:///x", "http://", "http://u@h/", 'http://h/"><b>'])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no address of a web server"):
        parse_address(text)
