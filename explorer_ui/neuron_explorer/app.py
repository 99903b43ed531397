"""The Dash application: one frame, whose page follows the browser's address."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output

from neuron_explorer import sections, shell
from neuron_explorer.page import Page, Site, View
from neuron_explorer.pages import find_page, pages
from neuron_explorer.parts.states import empty_state, error_state
from neuron_explorer.steps import step_strip
from neuron_tools.errors import NeuronToolsError

INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
{%metas%}
<title>{%title%}</title>
{%favicon%}
{%css%}
</head>
<body>
{%app_entry%}
<footer>{%config%}{%scripts%}{%renderer%}</footer>
</body>
</html>
"""


def make_app(site: Site) -> Dash:
    """The application. Everything it loads comes from this server."""
    app = Dash(
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
        Input("address", "pathname"),
        Input("address", "search"),
        Input("address", "hash"),
    )
    def show(pathname: str | None, search: str | None, _: str | None) -> tuple[Any, ...]:
        return render(site.view(pathname, search))

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


def render(view: View) -> tuple[Any, str, Any, Any, str, Any]:
    """Page, its class, navigation, heading, window title and steps of a view."""
    page = find_page(view.address.path)
    view = shell.with_default_profile(view, page)
    fills = "fills" if page is not None and page.fills_window else ""
    return (
        draw_page(page, view),
        fills,
        shell.navigation(view, page),
        shell.heading(view, page),
        shell.window_title(view, page),
        step_strip(view.address, view.analyses) if page is not None and page.needs_profile else [],
    )


def draw_page(page: Page | None, view: View) -> Any:
    """Components of a page; what goes wrong in it becomes a sentence."""
    if page is None:
        return empty_state("There is no such page.", "Choose one on the left.")
    if page.needs_profile and not view.address.profile:
        return empty_state("No profile is chosen.", shell.choose_profile(view))
    try:
        if page.needs_profile:
            view.profile  # noqa: B018  opens it: a profile that cannot be opened is told here
        return page.layout(view)
    except NeuronToolsError as error:
        return error_state(str(error), [shell.choose_profile(view)])
    except Exception as error:
        logging.getLogger(__name__).exception("A page could not be drawn: %s", page.path)
        return error_state(f"This page cannot be shown ({type(error).__name__}).")
