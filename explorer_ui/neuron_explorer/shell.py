"""What stands around every page: navigation, heading, the profile's name and the theme switch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dash import dcc, html

from neuron_explorer.address import SCOPE, WHOLE
from neuron_explorer.page import Page, View
from neuron_explorer.pages import pages
from neuron_explorer.steps import opening_address
from neuron_profile.reports.quantities import duration
from neuron_tools.errors import NeuronToolsError

PROFILES = "/"
_UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "µs"))


def frame(root: str = "") -> Any:
    """The layout of the application below a path; the callback that follows the address fills it."""
    return html.Div(
        [
            dcc.Location(id="address", refresh=False),
            dcc.Store(id="window-title"),
            dcc.Store(id="go-to"),
            dcc.Store(id="shown"),
            html.A("Skip to the page", href="#page", className="skip"),
            html.Header(
                [
                    html.A("Neuron Explorer", href=root + PROFILES, className="brand"),
                    html.Div(id="heading", className="heading"),
                    html.Button(
                        "Pages",
                        className="button quiet pages-button",
                        **{"data-action": "pages", "aria-expanded": "false", "aria-controls": "navigation"},
                    ),
                    html.Button("Copy link", className="button quiet", **{"data-action": "copy-link"}),
                    html.Button(
                        "Theme", className="button quiet", title="Light or dark", **{"data-action": "theme"}
                    ),
                ],
                className="top",
            ),
            html.Nav(id="navigation", className="side", **{"aria-label": "Pages"}),
            html.Nav(id="steps", className="steps", **{"aria-label": "Steps"}),
            html.Main(id="page", tabIndex=-1),
            html.Div(id="announcer", role="status", className="visually-hidden", **{"aria-live": "polite"}),
        ],
        className="shell",
    )


def with_default_profile(view: View, page: Page | None) -> View:
    """The view with the library's only profile where the address names none."""
    if page is None or not page.needs_profile or view.address.profile:
        return view
    entries = view.library.entries()
    if len(entries) != 1:
        return view
    address = replace(view.address, profile=entries[0].id)
    return replace(view, address=opening_address(address, view.analyses))


def navigation(view: View, current: Page | None) -> Any:
    """Links to all pages, the current one marked; of those of a profile, the ones that it fills."""
    groups: dict[str, list[Any]] = {}
    for page in pages():
        if page is not current and not _is_offered(page, view):
            continue
        marks = {"aria-current": "page"} if page is current else {}
        link = html.A(page.title, href=view.address.to(page.path), className="nav-link", **marks)
        groups.setdefault(page.group, []).append(html.Li(link))
    return [html.Div([html.P(name, className="nav-group"), html.Ul(links)]) for name, links in groups.items()]


def _is_offered(page: Page, view: View) -> bool:
    if not page.needs_profile:
        return True
    try:
        return bool(view.address.profile) and page.has_content(view)
    except NeuronToolsError:  # the page says why the profile cannot be read
        return False


def heading(view: View, page: Page | None) -> Any:
    """Title of the page, name of the profile, and the chosen range with a way out of it."""
    title = html.H1(page.title if page else "Not found")
    if page is None or not page.needs_profile or not view.address.profile:
        return [title]
    return [
        title if page.heading is None else page.heading(view),
        html.Span(_name(view), className="profile-name", title=_location(view)),
        *_range(view, page),
    ]


def window_title(view: View, page: Page | None) -> str:
    """Title of the browser's window."""
    title = page.title if page else "Not found"
    name = _name(view) if view.address.profile and page is not None and page.needs_profile else ""
    return " · ".join(filter(None, (title, name, "Neuron Explorer")))


def choose_profile(view: View) -> Any:
    """A way to the list of profiles."""
    return html.A("Choose a profile", href=view.address.root + PROFILES, className="button")


def _range(view: View, page: Page) -> list[Any]:
    address = view.address
    if address.start_ns is None or address.end_ns is None:
        return []
    text = range_text(address.start_ns, address.end_ns)
    if not page.follows_range:
        text = f"all of the profile, not only {text}"
    whole = replace(address, start_ns=None, end_ns=None).to(**{SCOPE: WHOLE})
    remove = html.A("×", href=whole, className="remove", **{"aria-label": "Show all of the profile"})
    return [html.Span([text, remove], className="chip", title="Chosen range of time")]


def range_text(start_ns: int, end_ns: int) -> str:
    """A range of time: its length, and its start as exactly as that length asks for.

    Example:
        >>> range_text(2_468_450_000, 2_468_686_000)
        '236 µs from 2.46845 s'
    """
    factor, unit = next((step for step in _UNITS if start_ns >= step[0]), (1, "ns"))
    digits = max(0, len(str(int(factor))) - len(str(max(1, (end_ns - start_ns) // 10))))
    start = f"{start_ns / factor:.{digits}f}"
    start = start.rstrip("0").rstrip(".") if "." in start else start
    return f"{duration(end_ns - start_ns)} from {start} {unit}"


def _name(view: View) -> str:
    try:
        return view.library.entry(view.address.profile).name
    except NeuronToolsError:
        return ""


def _location(view: View) -> str:
    try:
        return view.library.entry(view.address.profile).location
    except NeuronToolsError:
        return ""
