"""Settings of the documentation site: see `scripts/build_site.py`."""

from __future__ import annotations

import json
import os
from importlib.metadata import version as version_of
from pathlib import Path

project = "Neuron Tools"
author = "The Neuron Tools developers"
copyright = author
release = version = version_of("neuron-tools")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["license.txt"]
myst_heading_anchors = 4
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
html_show_sphinx = False
html_theme_options: dict[str, list[object]] = {"footer_icons": []}
templates_path = [str(Path(__file__).parent / "templates")]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
# A list of {"name": "0.2", "url": "../0.2/"}: one folder per release stands beside this one.
versions = os.environ.get("VERSIONS")
html_context = {"versions": json.loads(Path(versions).read_text()) if versions else []}
