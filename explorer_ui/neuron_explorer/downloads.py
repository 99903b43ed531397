"""Files that the browser downloads."""

from __future__ import annotations

from flask import Flask

from neuron_explorer.analyses import Analyses
from neuron_explorer.library import ProfileLibrary


def register(server: Flask, library: ProfileLibrary, analyses: Analyses) -> None:
    """Add the routes of downloads to a server."""
