"""What a page is: its place in the navigation, what it shows of a view, and its callbacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from dash import Dash
from dash.development.base_component import Component

from neuron_explorer.address import Address
from neuron_explorer.analyses import Analyses
from neuron_explorer.jobs import Job
from neuron_explorer.library import ProfileLibrary
from neuron_explorer.sharing import NOT_SHARED, Sharing
from neuron_explorer.steps import opening_address, prepare_ranges
from neuron_explorer.tasks import Tasks
from neuron_explorer.theme import LIGHT, Theme, requested_theme
from neuron_explorer.user_store import UserStore
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile


@frozen
class View:
    """What a page is drawn from."""

    library: ProfileLibrary
    analyses: Analyses
    address: Address
    theme: Theme = LIGHT
    tasks: Tasks = field(default_factory=Tasks)
    store: UserStore = field(default_factory=UserStore)
    sharing: Sharing = NOT_SHARED

    @property
    def profile(self) -> Profile:
        """The profile that the address names.

        Raises:
            UnknownProfileError, NotAProfileError: It cannot be opened.
        """
        return self.library.get(self.address.profile)

    @property
    def is_panel(self) -> bool:
        """Whether it is drawn into a panel of the workspace, where there is little room."""
        return bool(self.address.get("panel"))

    @property
    def range_ns(self) -> tuple[int, int] | None:
        """The chosen range; None for all of the profile."""
        start, end = self.address.start_ns, self.address.end_ns
        return None if start is None or end is None else (start, end)

    @property
    def part(self) -> Profile:
        """The profile, seen through the chosen range.

        Raises:
            UnknownProfileError, NotAProfileError: It cannot be opened.
        """
        return self.analyses.part(self.address.profile, self.range_ns)

    def job(self, name: str, *arguments: str) -> Job:
        """The job of an analysis of the profile in the chosen range.

        Raises:
            UnknownProfileError, NotAProfileError: The profile cannot be opened.
        """
        return self.analyses.job(self.address.profile, name, *arguments, range_ns=self.range_ns)

    def result(self, name: str, *arguments: str) -> Any:
        """The result of an analysis, waited for; a section's are there when it is drawn.

        Raises:
            NeuronToolsError: The analysis failed.
        """
        return self.analyses.now(self.address.profile, name, *arguments, range_ns=self.range_ns)


@frozen
class Ahead:
    """The timeline that a page opens with, and where it stands.

    Attributes:
        timeline: The component that the page will have.
        layout: The arrangement of the workspace in which it is a panel; "" where it has the page for itself.
    """

    timeline: Component
    layout: str = ""


@frozen
class Site:
    """What a page's callbacks work on; the same for the whole application."""

    library: ProfileLibrary
    analyses: Analyses
    tasks: Tasks
    store: UserStore
    root: str = ""
    sharing: Sharing = NOT_SHARED

    def view(self, pathname: str | None, search: str | None) -> View:
        """The view at an address, in the theme that the user's browser asks for.

        Where the address names neither a range nor `scope=all`, a typical step is shown.
        """
        address = opening_address(Address.parse(pathname, search, self.root), self.analyses)
        prepare_ranges(address, self.analyses)
        theme = requested_theme()
        return View(self.library, self.analyses, address, theme, self.tasks, self.store, self.sharing)


def always(view: View) -> bool:
    """Most pages have something to show of any profile."""
    return True


def _no_callbacks(app: Dash, site: Site) -> None:
    """Most pages are drawn from the address alone."""


@frozen
class Page:
    """A page of the Explorer.

    Attributes:
        path: Its address: "/memory".
        title: In the navigation and the window's title.
        layout: Components of the page for a view. Runs in the callback that follows the address.
        register: Adds the page's callbacks, once per application.
        group: Heading in the navigation under which it stands.
        needs_profile: Whether it shows one profile; else it is drawn without.
        has_content: Whether it has something to show of a view's profile: else the navigation lacks it.
        fills_window: Whether it takes the whole window beside the navigation, without margins.
        heading: What stands in the place of its title.
        follows_address: Whether the browser lets it follow the address by itself, once it is drawn.
        follows_range: Whether it shows the chosen range of time, not always all of the profile.
        ahead: The timeline that it opens with, which is drawn before the page is there; None at addresses
            where it opens otherwise.
    """

    path: str
    title: str
    layout: Callable[[View], Any]
    register: Callable[[Dash, Site], None] = _no_callbacks
    group: str = ""
    needs_profile: bool = True
    has_content: Callable[[View], bool] = always
    fills_window: bool = False
    follows_range: bool = True
    follows_address: bool = False
    heading: Callable[[View], Any] | None = None
    ahead: Callable[[View], Ahead | None] | None = None
