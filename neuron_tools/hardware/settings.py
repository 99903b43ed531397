"""Settings of the command line that change a NeuronCore: `--set hbm_bandwidth=2x`."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from neuron_tools.hardware.catalogue import figure_names
from neuron_tools.hardware.errors import UnknownFigureError
from neuron_tools.hardware.neuron_core import NeuronCore


def apply_settings(core: NeuronCore, settings: Iterable[str]) -> NeuronCore:
    """The core with settings applied in order.

    Args:
        core: The core to start from.
        settings: Each "name=value", where value is a number, or a factor such as "2x" or "0.5x".

    Raises:
        UnknownFigureError: A setting that is malformed, names no figure, or gives a value below zero.

    Example:
        >>> apply_settings(get("trn2"), ["hbm_bandwidth=2x", "dma_engines=8"])
    """
    for setting in settings:
        name, separator, text = setting.partition("=")
        name = name.strip()
        if not separator or name not in figure_names():
            raise UnknownFigureError(
                f"Cannot apply the setting {setting!r}: write NAME=VALUE or NAME=2x, with NAME a hardware "
                f"figure such as {', '.join(_like(name))} (neuron_tools.hardware.figure_names() lists all)."
            )
        core = core.replace(**{name: _value(core, name, text.strip(), setting)})
    return core


def _like(name: str) -> list[str]:
    """Figures with names like one that is not known."""
    return get_close_matches(name, figure_names(), 4, 0.4) or [
        "hbm_bandwidth",
        "dma_engines",
        "dma_bandwidth",
    ]


def _value(core: NeuronCore, name: str, text: str, setting: str) -> float:
    current = getattr(core, name)
    factor = text.endswith(("x", "X"))
    try:
        number = float(text[:-1] if factor else text)
    except ValueError:
        raise UnknownFigureError(
            f"Cannot apply the setting {setting!r}: {text!r} is neither a number nor a factor such as 2x."
        ) from None
    value = number * current if factor else number
    if not 0 <= value < float("inf") or (value == 0 and current > 0 and not name.endswith("_ns")):
        raise UnknownFigureError(
            f"Cannot apply the setting {setting!r}: the result {value:g} makes no sense."
        )
    return round(value) if isinstance(current, int) else value
