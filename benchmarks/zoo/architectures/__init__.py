"""Architectures of `transformers`, as unlike one another as they come, each with what is its own."""

from __future__ import annotations

from benchmarks.zoo.architectures import media, texts
from benchmarks.zoo.architectures.architecture import Architecture

ARCHITECTURES = (
    *texts.DECODERS,
    *texts.MIXTURES,
    *texts.RECURRENT,
    *texts.ENCODERS,
    *texts.PAIRS,
    *media.PICTURES,
    *media.SOUNDS,
    *media.SERIES,
    *media.MEDIA,
)


def architecture(name: str) -> Architecture:
    """The architecture of that name.

    Raises:
        KeyError: There is none.
    """
    return {known.name: known for known in ARCHITECTURES}[name]


__all__ = ["ARCHITECTURES", "Architecture", "architecture"]
