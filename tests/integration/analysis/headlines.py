"""The sentence above the workspace's panels, as a user reads it of a profile that opens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neuron_explorer.analyses import Analyses
from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_explorer.page import Site
from neuron_explorer.tasks import Tasks
from neuron_explorer.user_store import UserStore
from neuron_explorer.workspace.headline import HEADLINE


def headline(path: Path) -> str:
    """The headline of a profile at the address that is printed for it."""
    with ProfileLibrary([path]) as library:
        site = Site(library, Analyses(library), Tasks(), UserStore(path.parent / "store"))
        return _text(HEADLINE.draw(site.view("/workspace", f"?profile={profile_id(path)}")))


def _text(component: Any) -> str:
    if component is None or isinstance(component, str):
        return component or ""
    if isinstance(component, list | tuple):
        return "".join(map(_text, component))
    return _text(getattr(component, "children", None))
