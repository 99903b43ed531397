"""The Explorer: a profile in the browser, served from this machine to this machine."""

from pathlib import Path

from neuron_tools.command_line import version_text

__version__ = version_text()  # Dash puts it into the addresses of scripts
# Dash looks here for the scripts of this package's components. The bundle is built from explorer_ui/timeline.
_BUNDLE = "timeline/static/neuron_timeline.js"
_js_dist = (
    [{"relative_package_path": _BUNDLE, "namespace": "neuron_explorer"}]
    if (Path(__file__).parent / _BUNDLE).is_file()
    else []
)
