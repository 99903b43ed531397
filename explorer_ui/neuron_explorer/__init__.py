"""The Explorer: a profile in the browser, served from this machine to this machine."""

from pathlib import Path

from neuron_tools.command_line import version_text

__version__ = version_text()  # Dash puts it into the addresses of scripts
# Dash looks here for the scripts of this package's components. The bundle is built from explorer_ui/timeline.
_BUNDLES = ("timeline/static/neuron_timeline.js", "timeline/static/neuron_workspace.js")
_js_dist = [
    {"relative_package_path": bundle, "namespace": "neuron_explorer"}
    for bundle in _BUNDLES
    if (Path(__file__).parent / bundle).is_file()
]
