"""Consoles: where text goes, how wide it may be, and whether it may have colour."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

from rich.console import Console

PLAIN_WIDTH = 100
MINIMUM_WIDTH = 80


def output_console() -> Console:
    """Standard output."""
    return console_for(sys.stdout)


def error_console() -> Console:
    """Standard error, for what must not mix with a captured command's output."""
    return console_for(sys.stderr)


def console_for(file: TextIO) -> Console:
    """A console on a stream; a stream that is no terminal gets a fixed width and no colour."""
    width = max(shutil.get_terminal_size().columns, MINIMUM_WIDTH) if file.isatty() else PLAIN_WIDTH
    return Console(file=file, width=width, highlight=False, markup=False, emoji=False)
