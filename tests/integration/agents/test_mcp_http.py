"""The official client talks to `neuron-profile mcp` over HTTP, and nobody without the token does."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys

import pytest

mcp = pytest.importorskip("mcp")
httpx = pytest.importorskip("httpx2")

TOKEN = "a-token-of-the-test"
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    (folder / "token").write_text(TOKEN)
    command = [sys.executable, "-m", "neuron_profile.cli", "mcp", str(folder), "--port", "0"]
    with subprocess.Popen(
        [*command, "--token-file", str(folder / "token")], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            yield re.search(r"http://\S+", server.stdout.readline())[0]
        finally:
            server.terminate()


def status(address, **headers):
    sent = {"accept": "application/json, text/event-stream", **headers}
    return httpx.post(address, json=HELLO, headers=sent).status_code


def test_the_official_client_asks_with_the_token(address):
    from mcp.client.streamable_http import streamable_http_client

    async def run():
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(headers=headers) as web:
            transport = streamable_http_client(address, http_client=web)
            async with mcp.Client(transport) as client:
                tools = {tool.name for tool in (await client.list_tools()).tools}
                result = await client.call_tool("profiles", {})
                return tools, json.loads(result.content[0].text)

    tools, profiles = asyncio.run(run())
    assert {"summary", "findings", "fix"} <= tools
    assert profiles["rows"] == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer another"},
        {"authorization": f"Bearer {TOKEN}", "host": "evil.example"},
        {"authorization": f"Bearer {TOKEN}", "origin": "http://evil.example"},
    ],
    ids=["no token", "another token", "another host", "another site"],
)
def test_nobody_else_is_answered(address, headers):
    assert status(address, **headers) == 401
