"""The Dash application: one page frame, its pages chosen by the address."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from dash import Dash, Input, Output, dcc, html

from neuron_explorer.content import Content
from neuron_explorer.pages.advice import advice_page
from neuron_explorer.pages.modules import modules_page
from neuron_explorer.pages.overview import overview_page
from neuron_explorer.pages.roofline import roofline_page
from neuron_explorer.pages.source import source_page
from neuron_explorer.pages.time import time_page

PAGES: dict[str, tuple[str, Callable[[Content, str], list[Any]]]] = {
    "/": ("Overview", lambda content, search: overview_page(content)),
    "/modules": ("Modules", lambda content, search: modules_page(content)),
    "/source": ("Source", source_page),
    "/time": ("Time", lambda content, search: time_page(content)),
    "/roofline": ("Roofline", roofline_page),
    "/advice": ("Advice", lambda content, search: advice_page(content)),
}


def make_app(content: Content) -> Dash:
    """The application for one profile. Everything it loads comes from this server."""
    app = Dash(
        "neuron_explorer",
        title=f"{escape(content.identity.name)} - Neuron Explorer",
        update_title="",
        serve_locally=True,
        assets_folder=str(Path(__file__).parent / "assets"),
        suppress_callback_exceptions=True,
    )
    app.layout = _frame(content)

    def show(pathname: str | None, search: str | None) -> list[Any]:
        return page(content, pathname or "/", search or "")

    address = Input("address", "pathname"), Input("address", "search")
    app.callback(Output("page", "children"), *address)(show)
    return app


def page(content: Content, pathname: str, search: str) -> list[Any]:
    """Components of the page at an address."""
    if pathname not in PAGES:
        return [html.P("There is no such page.")]
    return PAGES[pathname][1](content, search)


def _frame(content: Content) -> Any:
    identity = content.identity
    links = [dcc.Link(title, href=address, className="tab") for address, (title, _) in PAGES.items()]
    facts = ", ".join(filter(None, (identity.command, identity.target, identity.host_clock)))
    return html.Div(
        [
            dcc.Location(id="address", refresh=False),
            html.Header([html.H1(identity.name), html.Span(facts, className="facts"), html.Nav(links)]),
            html.Main(id="page"),
        ]
    )
