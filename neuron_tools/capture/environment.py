"""The environment that makes a command, and everything it starts, record itself."""

from __future__ import annotations

from pathlib import Path

from neuron_tools.capture.options import VARIABLE, CaptureOptions


def child_environment(
    directory: Path,
    target: str = "trn2",
    lnc: int = 1,
    host_clock: str = "measured",
    settings: tuple[str, ...] = (),
) -> dict[str, str]:
    """Variables to put on top of `os.environ` for the captured command.

    Any Python in it that imports torch finds the recorder through torch's own back-end autoload, so no
    file of the user's is touched; each process writes its own folder below `directory/log`.
    """
    options = CaptureOptions(directory.absolute(), target, lnc, host_clock, settings=settings)
    return {VARIABLE: options.to_json(), "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}
