"""The page Workspace: where its panels stand, and the callback that fills each when it is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dash import MATCH, ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update
from dash.fingerprint import build_fingerprint

from neuron_explorer import __version__
from neuron_explorer.address import SCOPE, Address
from neuron_explorer.compared import COMPARE, other_profiles
from neuron_explorer.drawing import draw_page, guarded
from neuron_explorer.page import Ahead, Page, Site, View
from neuron_explorer.pages import find_page
from neuron_explorer.parts.states import empty_state
from neuron_explorer.timeline.page import BUNDLE as TIMELINE_BUNDLE, NOT_BUILT, timeline_ahead
from neuron_explorer.workspace.arrangements import ARRANGEMENTS, arrangement_named
from neuron_explorer.workspace.panels import PANELS, Panel, panel_named

PATH = "/workspace"
ARRANGEMENT = "a"
"""Parameter of the address: name of the arrangement."""
BUNDLE = TIMELINE_BUNDLE.with_name("neuron_workspace.js")
CONTENT, AT = "panel-content", "panel-at"
TIMELINE, COMPARING, LAYOUT = "timeline", "compare", "l"
"""A panel, an arrangement, and the parameter of the address that has a layout of the user's own."""


def workspace_page(view: View) -> Any:
    """The frame of the workspace; the browser arranges the panels in it and asks for their contents."""
    if not BUNDLE.is_file():
        return empty_state(NOT_BUILT)
    data = {
        "root": view.address.root,
        "script": _script(view.address.root),
        "path": PATH,
        "others": ",".join(other_profiles(view)),
        "arrangements": [{"name": one.name, "layout": one.layout} for one in ARRANGEMENTS],
        "panels": [
            {
                "name": panel.name,
                "title": panel.title,
                "path": panel.path,
                "parameters": list(panel.parameters),
                "kept": list(panel.kept),
            }
            for panel in PANELS
        ],
    }
    headline, *docked = (_place(panel, _drawn_at_once(panel, view)) for panel in PANELS)
    return html.Div(
        [
            headline,
            html.Div(id="workspace-crumbs", className="ws-crumbs"),
            html.Div(id="workspace-dock", className="ws-dock"),
            html.Div(docked, id="workspace-panels", hidden=True),
            dcc.Store(id="workspace-data", data=data),
        ],
        id="workspace",
        className="workspace",
    )


def _script(root: str) -> str:
    """Where the browser gets the workspace's script: elsewhere when it was built anew, so it may be kept."""
    path = build_fingerprint(f"timeline/static/{BUNDLE.name}", __version__, int(BUNDLE.stat().st_mtime))
    return f"{root}/_dash-component-suites/neuron_explorer/{path}"


def arrangement_choice(view: View) -> Any:
    """Links to the made arrangements; a layout of the user's own is left behind by each of them."""
    chosen = arrangement_named(view.address.get(ARRANGEMENT))
    links = [
        html.A(
            one.title,
            href=view.address.to(**{ARRANGEMENT: one.name, LAYOUT: None, "max": None}),
            className="choice",
            **{"data-arrangement": one.name},
            **({"aria-current": "true"} if one is chosen else {}),
        )
        for one in ARRANGEMENTS
    ]
    return html.Nav(links, className="choices", **{"aria-label": "Arrangement"})


def _drawn_at_once(panel: Panel, view: View) -> Any:
    """The timeline of a made arrangement of one profile: it is drawn while the browser arranges the panels.

    All else is asked for, by the browser, when it knows what is in sight.
    """
    address = view.address
    is_arranged = not address.get(LAYOUT) and _shows_one_profile(address)
    if panel.name != TIMELINE or not address.profile or not is_arranged:
        return None
    return draw_panel(panel, _of_timeline(view))


def workspace_ahead(view: View) -> Ahead | None:
    """The timeline of a made arrangement, unless the address says more of it than the range that is shown."""
    address = view.address
    is_moved = any(address.get(name) for name in (LAYOUT, "max", "focus", "t", "sel"))
    if not BUNDLE.is_file() or is_moved or not _shows_one_profile(address):
        return None
    found = timeline_ahead(_of_timeline(view))
    return found and replace(found, layout=arrangement_named(address.get(ARRANGEMENT)).layout)


def _shows_one_profile(address: Address) -> bool:
    return arrangement_named(address.get(ARRANGEMENT)).name != COMPARING and not address.get(COMPARE)


def _of_timeline(view: View) -> View:
    """The view of the timeline's panel, before it is asked for anything of its own."""
    address = view.address
    parameters = {name: address.parameters[name] for name in (SCOPE,) if name in address.parameters}
    return replace(view, address=replace(address, parameters={**parameters, "panel": TIMELINE}))


def _place(panel: Panel, content: Any) -> Any:
    own = {"name": panel.name}
    return html.Section(
        [
            html.Div(content, id={"type": CONTENT, **own}, className="panel-content"),
            dcc.Store(id={"type": AT, **own}),
        ],
        id=f"panel-{panel.name}",
        className=f"panel panel-{panel.name}",
        tabIndex=-1,
        **{"data-panel": panel.name, "aria-label": panel.title},
    )


def draw_panel(panel: Panel, view: View) -> Any:
    """Content of a panel at a view."""
    draw = panel.draw
    if draw is not None:
        return guarded(view, lambda: draw(view))
    return draw_page(find_page(panel.path), view)


def register(app: Dash, site: Site) -> None:
    """Open the workspace in the browser, and fill the panels that it asks for."""
    app.clientside_callback(
        ClientsideFunction("explorer", "open_workspace"),
        Output("workspace-data", "modified_timestamp"),
        Input("workspace-data", "data"),
    )

    @app.callback(
        Output({"type": CONTENT, "name": MATCH}, "children"),
        Input({"type": AT, "name": MATCH}, "data"),
        State({"type": AT, "name": MATCH}, "id"),
        prevent_initial_call=True,
    )
    def fill(at: str | None, own: dict[str, str]) -> Any:
        panel = panel_named(own["name"])
        if panel is None or not isinstance(at, str):
            return no_update
        path, _, search = at.partition("?")
        return draw_panel(panel, site.view(path, search))


PAGE = Page(
    PATH,
    "Workspace",
    workspace_page,
    register,
    fills_window=True,
    follows_address=True,
    heading=arrangement_choice,
    ahead=workspace_ahead,
)
