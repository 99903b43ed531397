"""The Dash application: one frame, whose page follows the browser's address."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dash import ClientsideFunction, Dash, Input, Output, State, no_update
from flask import request

from neuron_explorer import sections, shell
from neuron_explorer.address import Address
from neuron_explorer.checked_app import CheckedApp
from neuron_explorer.drawing import draw_page
from neuron_explorer.page import Page, Site, View
from neuron_explorer.pages import find_page, pages
from neuron_explorer.steps import step_strip
from neuron_explorer.timeline.ahead import ahead_link

INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
{%metas%}
<title>{%title%}</title>
{%css%}
</head>
<body>
{%app_entry%}
<footer>{%config%}{%scripts%}{%renderer%}</footer>
</body>
</html>
"""


ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" stroke-width="2.4">'
    '<rect width="16" height="16" rx="3" fill="#0f141a"/><path d="M2 4h8" stroke="#0072b2"/>'
    '<path d="M5 8h9" stroke="#e69f00"/><path d="M3 12h6" stroke="#009e73"/></svg>'
)
"""Spans of three engines."""
ICON_LINK = f'<link rel="icon" href="data:image/svg+xml,{quote(ICON)}">'
"""In the page: a browser asks for an icon of the server's anew with every change of the address."""
FIRST_SCRIPTS = re.compile(r"/assets/explorer\.|neuron_timeline\.")
"""What the first sight of a page takes: the theme, and the timeline."""


class ExplorerApp(CheckedApp):
    """The application of a site, whose pages begin with the timeline that they open with."""

    def __init__(self, site: Site, *arguments: Any, **named: Any) -> None:
        self._site = site
        super().__init__(*arguments, **named)

    def interpolate_index(self, **parts: str) -> str:
        """The page in HTML, as Dash's; what draws the timeline that it opens with comes first."""
        address = Address.parse(request.path, request.query_string.decode(), self._site.root)
        link = ahead_link(find_page(address.path), address)
        parts = {**parts, "metas": parts["metas"] + ICON_LINK}
        return str(super().interpolate_index(**(with_ahead(link, parts) if link else parts)))


def with_ahead(link: str, parts: Mapping[str, str]) -> dict[str, str]:
    """The parts of a page that opens with a timeline: its other scripts wait for it, in a template."""
    scripts = re.findall(r"<script.*?</script>", parts["scripts"], re.DOTALL)
    first = [script for script in scripts if FIRST_SCRIPTS.search(script)]
    rest = [script for script in scripts if script not in first]
    waiting = f'<template id="page-scripts">{"".join(rest)}{parts["renderer"]}</template>'
    return {**parts, "metas": parts["metas"] + link, "scripts": "".join(first), "renderer": waiting}


def make_app(site: Site) -> Dash:
    """The application. Everything it loads comes from this server."""
    app = ExplorerApp(
        site,
        "neuron_explorer",
        title="Neuron Explorer",
        update_title="",
        index_string=INDEX,
        serve_locally=True,
        assets_folder=str(Path(__file__).parent / "assets"),
        suppress_callback_exceptions=True,
        requests_pathname_prefix=f"{site.root}/",
        routes_pathname_prefix="/",
    )
    app.layout = shell.frame(site.root)

    @app.callback(
        Output("page", "children"),
        Output("page", "className"),
        Output("navigation", "children"),
        Output("heading", "children"),
        Output("window-title", "data"),
        Output("steps", "children"),
        Output("shown", "data"),
        Input("address", "pathname"),
        Input("address", "search"),
        Input("address", "hash"),
        State("shown", "data"),
    )
    def show(pathname: str | None, search: str | None, _: str | None, shown: str | None) -> tuple[Any, ...]:
        return render(site.view(pathname, search), shown)

    app.clientside_callback(
        ClientsideFunction("explorer", "set_title"),
        Output("window-title", "modified_timestamp"),
        Input("window-title", "data"),
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "go_to"),
        Output("go-to", "modified_timestamp"),
        Input("go-to", "data"),
        prevent_initial_call=True,
    )
    sections.register(app, site)
    for page in pages():
        page.register(app, site)
    return app


def render(view: View, shown: str | None = None) -> tuple[Any, str, Any, Any, str, Any, str]:
    """Page, its class, navigation, heading, window title and steps of a view, and what is shown now.

    Args:
        shown: What was shown before: a page that follows the address by itself is not drawn again.
    """
    page = find_page(view.address.path)
    view = shell.with_default_profile(view, page)
    now = f"{view.address.path} {view.address.profile}"
    stays = page is not None and page.follows_address and now == shown
    fills = "fills" if page is not None and page.fills_window else ""
    return (
        no_update if stays else draw_page(page, view),
        fills,
        shell.navigation(view, page),
        shell.heading(view, page),
        shell.window_title(view, page),
        _steps_above(view, page),
        now,
    )


def _steps_above(view: View, page: Page | None) -> Any:
    """The steps of the profile that a page shows; nothing above a page without one."""
    if page is None or not page.needs_profile:
        return []
    return step_strip(view.address, view.analyses, is_always_whole=not page.follows_range)
