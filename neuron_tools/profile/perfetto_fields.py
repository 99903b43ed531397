"""Numbers of the fields of Perfetto's messages, by name."""

from __future__ import annotations

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos


def field_number(message: str, field: str) -> int:
    """The number of a field of a message, both named as Perfetto's definitions name them."""
    number: int = getattr(protos, message).DESCRIPTOR.fields_by_name[field].number
    return number
