"""Tables that follow from the recorded ones: computed when a capture or an import ends."""

from __future__ import annotations

from pathlib import Path

from neuron_tools.profile.writer import ProfileWriter


def derive_tables(directory: Path, writer: ProfileWriter) -> None:
    """Compute the derived tables of a flushed profile and put them in place."""
