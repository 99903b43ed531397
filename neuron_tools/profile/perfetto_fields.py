"""Numbers of the fields of Perfetto's messages, by name, and what our descriptions of tracks say."""

from __future__ import annotations

import re

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos


def field_number(message: str, field: str) -> int:
    """The number of a field of a message, both named as Perfetto's definitions name them."""
    number: int = getattr(protos, message).DESCRIPTOR.fields_by_name[field].number
    return number


_DEVICE = re.compile(r"device (\d{1,6})(?:, stream (-?\d{1,18}))?")


def device_text(device_idx: int, stream: int | None) -> str:
    """The description of a track that shows a device's work: `device 0`, `device 0, stream 7`."""
    return f"device {device_idx}" if stream is None else f"device {device_idx}, stream {stream}"


def told_device(description: str) -> tuple[int | None, int | None]:
    """Device and stream that `device_text` has written; None for what a description does not tell."""
    found = _DEVICE.fullmatch(description)
    if found is None:
        return None, None
    return int(found[1]), None if found[2] is None else int(found[2])
