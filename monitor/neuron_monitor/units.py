"""Numbers as people read them."""

from __future__ import annotations

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_METRIC = ("", "k", "M", "G", "T", "P", "E")
_SECONDS = ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "µs"), (0.0, 1e9, "ns"))
ABSENT = "–"


def percent(share: float) -> str:
    """A share, e.g. "43 %"."""
    return f"{100 * share:.0f} %"


def binary_size(size: float) -> str:
    """Bytes, e.g. "1.5 GiB"."""
    return _scaled(size, 1024, _BINARY)


def metric(value: float) -> str:
    """A number with a metric prefix, e.g. "1.2 T"."""
    return _scaled(value, 1000, _METRIC).strip()


def seconds(value: float | None) -> str:
    """A duration, e.g. "3.4 ms"; a dash where there is none."""
    if value is None or value != value:
        return ABSENT
    for limit, factor, unit in _SECONDS:
        if value >= limit:
            return f"{value * factor:.3g} {unit}" if value < 1e4 else f"{value:.0f} s"
    return "0 s"


def _scaled(value: float, step: int, units: tuple[str, ...]) -> str:
    if value != value:
        return ABSENT
    size = 0
    while abs(value) >= step and size + 1 < len(units):
        value /= step
        size += 1
    return f"{value:.3g} {units[size]}" if abs(value) < 1000 else f"{value:.0f} {units[size]}"
