"""The environment that makes a command, and everything it starts, record itself."""

from __future__ import annotations

from neuron_tools.capture.options import VARIABLE, CaptureOptions


def child_environment(options: CaptureOptions) -> dict[str, str]:
    """Variables to put on top of `os.environ` for the captured command.

    Any Python in it that imports torch finds the recorder through torch's own back-end autoload, so no
    file of the user's is touched; each process writes its own folder below `options.log_directory`.
    """
    return {VARIABLE: options.to_json(), "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}
