from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from neuron_explorer.app import page
from neuron_explorer.content import Content, read_content
from neuron_explorer.server import make_guarded_server
from neuron_tools import open_profile
from neuron_tools.web_access import Access

BASE = "http://127.0.0.1:3001"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def content(make_profile) -> Iterator[Content]:
    with open_profile(make_profile()) as profile:
        yield read_content(profile)


def client_of(content: Content) -> FlaskClient:
    client = make_guarded_server(content, Access("neuron-explorer", 3001, "right")).test_client()
    client.get("/?token=right", base_url=BASE)
    return client


def texts(component: Any) -> list[str]:
    """All texts in a component tree, in order."""
    if isinstance(component, (list, tuple)):
        return [text for part in component for text in texts(part)]
    if isinstance(component, str):
        return [component]
    return texts(getattr(component, "children", None) or [])


def rows(component: Any) -> list[list[str]]:
    """The texts of each table row in a component tree."""
    if isinstance(component, (list, tuple)):
        return [row for part in component for row in rows(part)]
    if type(component).__name__ == "Tr":
        return [[" ".join(texts(cell)) for cell in component.children]]
    children = getattr(component, "children", None)
    return rows(children) if children is not None and not isinstance(children, str) else []


def test_the_overview_has_totals_and_operations(content: Content) -> None:
    shown = rows(page(content, "/", ""))
    assert ["Device time", "200 ns in 2 executions on 1 NeuronCore"] in shown
    assert ["aten::addmm", "100 ns", "50.0 %", "100 ns", "", "1"] in shown
    assert ["compiler", "aten::foo runs on the host", "2"] in shown


def test_the_engine_figure_shows_shares_of_device_time(content: Content) -> None:
    (graph,) = [part for part in page(content, "/", "") if type(part).__name__ == "Graph"]
    frame, active = graph.figure.data
    assert (active.y, active.x) == (("DMA", "Tensor"), (10.0, 40.0))
    assert frame.x == (100, 100)


def test_the_module_table_is_the_tree(content: Content) -> None:
    assert rows(page(content, "/modules", ""))[1:] == [
        ["(whole program)", "150 ns", "75.0 %", "130 ns", "20 ns", "3", ""],
        ["model", "150 ns", "75.0 %", "130 ns", "20 ns", "3", ""],
        ["a", "130 ns", "65.0 %", "130 ns", "", "2", "130 ns"],
        ["b", "20 ns", "10.0 %", "", "20 ns", "1", "20 ns"],
    ]


def test_the_source_page_has_the_text_with_time_beside_it(content: Content) -> None:
    assert rows(page(content, "/source", "")) == [
        ["Line", "Time", "Share"],
        ["/project/train.py:2", "100 ns", "50.0 %"],
        ["/project/train.py:3", "50 ns", "25.0 %"],
        ["", "1", "import torch"],
        ["100 ns", "2", "y = layer(x)"],
        ["50 ns", "3", "z = y * 2"],
    ]


def test_a_file_that_the_profile_does_not_have_is_never_read(content: Content) -> None:
    shown = page(content, "/source", "?file=/etc/passwd")
    assert not [text for text in texts(shown) if "root:" in text]
    assert ["100 ns", "2", "y = layer(x)"] in rows(shown)


def test_pages_of_an_empty_profile(make_profile) -> None:
    with open_profile(make_profile(tables={}, complete=False)) as profile:
        empty = read_content(profile)
        assert any(text.startswith("Incomplete") for text in texts(page(empty, "/", "")))
        assert rows(page(empty, "/modules", ""))[1][0] == "(whole program)"
        assert texts(page(empty, "/source", "")) == ["No device time of this profile has a source line."]
        assert texts(page(empty, "/nowhere", "")) == ["There is no such page."]


def test_the_index_loads_from_this_server_only_and_its_scripts_are_allowed(content: Content) -> None:
    import base64
    import hashlib

    answer = client_of(content).get("/", base_url=BASE)
    assert answer.status_code == 200
    loaded = re.findall(r'<(?:script|link)[^>]*(?:src|href)="([^"]*)"', answer.text)
    assert loaded
    assert all(address.startswith("/") and not address.startswith("//") for address in loaded)
    inline = re.findall(r'<script id="_dash-renderer"[^>]*>(.*?)</script>', answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(inline[0].encode()).digest()).decode()
    assert f"'sha256-{digest}'" in answer.headers["Content-Security-Policy"]


def update(client: FlaskClient, pathname: str, **headers: str) -> Any:
    inputs = [
        {"id": "address", "property": "pathname", "value": pathname},
        {"id": "address", "property": "search", "value": ""},
    ]
    body = {
        "output": "page.children",
        "outputs": {"id": "page", "property": "children"},
        "inputs": inputs,
        "changedPropIds": ["address.pathname"],
    }
    return client.post("/_dash-update-component", json=body, base_url=BASE, headers=headers)


def test_the_page_callback_answers_our_own_pages_only(content: Content) -> None:
    client = client_of(content)
    assert "aten::addmm" in update(client, "/", Origin=BASE).text
    assert update(client, "/", Origin="http://evil.example").status_code == 403
    client.delete_cookie("neuron-explorer-3001", domain="127.0.0.1")
    assert update(client, "/", Origin=BASE).status_code == 403


def test_names_with_script_stay_text(make_profile, tiny_tables) -> None:
    framework = {
        **tiny_tables["FrameworkInstruction"],
        "framework_name": [SCRIPT] * 3,
        "layer": [f"/{SCRIPT.replace('/', '')}"] * 3,
    }
    tables = {
        **tiny_tables,
        "FrameworkInstruction": framework,
        "Warning": {"message": [SCRIPT], "category": ["x"]},
    }
    with open_profile(make_profile("<script>x.nprof", tables)) as profile:
        content = read_content(profile)
        client = client_of(content)
        index = client.get("/", base_url=BASE).text
        assert "<title>&lt;script&gt;x.nprof" in index
        layout = client.get("/_dash-layout", base_url=BASE)
        assert layout.mimetype == "application/json"
        answer = update(client, "/", Origin=BASE)
    assert answer.mimetype == "application/json"
    assert SCRIPT in json.dumps(answer.json)
    assert "dangerously" not in answer.text
    figures = [part.figure.to_json() for part in page(content, "/", "") if hasattr(part, "figure")]
    assert figures
    assert not [figure for figure in figures if "script" in figure]
