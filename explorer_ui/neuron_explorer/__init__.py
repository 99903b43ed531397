"""The Explorer: a profile in the browser, served from this machine to this machine."""

from pathlib import Path

from neuron_tools.version import installed_version

__version__ = installed_version()  # Dash puts it into the addresses of scripts
# Dash looks here for the scripts of this package's components, built from explorer_ui/timeline. What is
# dynamic it serves, but no page begins with it: the workspace asks for its own when it is opened.
_BUNDLES = {"timeline/static/neuron_timeline.js": False, "timeline/static/neuron_workspace.js": True}
_js_dist = [
    {"relative_package_path": bundle, "namespace": "neuron_explorer", "dynamic": is_dynamic}
    for bundle, is_dynamic in _BUNDLES.items()
    if (Path(__file__).parent / bundle).is_file()
]
