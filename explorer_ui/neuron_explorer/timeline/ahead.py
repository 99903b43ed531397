"""The timeline that a page opens with: the browser draws it while the rest of the page is on its way.

A page of the Explorer takes many scripts and several requests, one after the other. The address already says
which timeline it shows, so the browser asks for that one first, and the page takes it over once it is there.
"""

from __future__ import annotations

from html import escape
from typing import Any
from urllib.parse import quote, urlencode

from flask import Flask, Response, jsonify, request

from neuron_explorer.address import Address
from neuron_explorer.page import Page, Site
from neuron_explorer.pages import find_page
from neuron_explorer.steps import typical_step
from neuron_explorer.timeline.parameters import Parameters
from neuron_explorer.timeline.routes import refusal, tracks_answer
from neuron_tools.errors import NeuronToolsError

NOTHING = 204


def ahead_link(page: Page | None, address: Address) -> str:
    """What stands in the head of a page that opens with a timeline, "" for others."""
    if page is None or page.ahead is None or not address.profile:
        return ""
    asked = f"{address.root}/data/{quote(address.profile, safe='')}/ahead?{urlencode({'at': address.to()})}"
    return f'<link id="timeline-ahead" rel="preload" as="fetch" crossorigin href="{escape(asked)}">'


def register(server: Flask, site: Site) -> None:
    """Put the route on a server that tells of the timeline at an address."""

    def ahead(profile_id: str) -> Response:
        path, _, search = request.args.get("at", "").partition("?")
        try:
            answer = ahead_answer(site, path, search)
        except NeuronToolsError as error:
            refused, status = refusal(error)
            refused.status_code = status
            return refused
        return Response(status=NOTHING) if answer is None else jsonify(answer)

    server.add_url_rule("/data/<profile_id>/ahead", "timeline_ahead", ahead)


def ahead_answer(site: Site, path: str, search: str) -> dict[str, Any] | None:
    """Of the timeline with which a page opens its properties, its place and its tracks; None without one.

    Raises:
        UnknownProfileError, NotAProfileError: The profile cannot be opened.
    """
    view = site.view(path, search)
    page = find_page(view.address.path)
    found = page.ahead(view) if page is not None and page.ahead is not None else None
    if found is None:
        return None
    properties: dict[str, Any] = found.timeline.to_plotly_json()["props"]
    begin_ns, end_ns = properties.get("range") or (None, None)
    asked = {} if begin_ns is None else {"start": str(begin_ns), "end": str(end_ns)}
    return {
        "props": properties,
        "layout": found.layout,
        "has_steps": typical_step(view.address.profile, view.analyses) is not None,
        "tracks": tracks_answer(view.profile, view.address.profile, Parameters(asked)),
    }
