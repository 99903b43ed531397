"""Names of planes in XLA's profiles."""

from __future__ import annotations

import re

_DEVICE = re.compile(r"^/device:[A-Za-z0-9_ ]+?:(\d{1,6})\b")


def device_of_plane(name: str) -> int | None:
    """The number of a device's plane, `/device:TPU:0`; None for the host's and for others."""
    found = _DEVICE.match(name)
    return int(found.group(1)) if found else None
