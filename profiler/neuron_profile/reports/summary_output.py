"""Summaries of one or several profiles on a stream."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import ExitStack
from typing import BinaryIO

from rich.console import Console

from neuron_profile.analysis.identity import identify
from neuron_profile.analysis.overview import make_overview
from neuron_profile.reports.comparison_text import Column, print_comparison
from neuron_profile.reports.summary_text import print_summary
from neuron_profile.reports.terminal import console_for
from neuron_tools.profile.reader import open_profile


def write_summaries(paths: Sequence[str], stream: BinaryIO) -> None:
    """Write the summary of one profile, or several side by side, as UTF-8.

    Raises:
        NotAProfileError: One of them is no profile.
    """
    text = io.TextIOWrapper(stream, encoding="utf-8", write_through=True)
    try:
        print_summaries(paths, console_for(text))
    finally:
        text.detach()


def print_summaries(paths: Sequence[str], console: Console) -> None:
    """Print the summary of one profile, or several side by side.

    Raises:
        NotAProfileError: One of them is no profile.
    """
    with ExitStack() as stack:
        profiles = [stack.enter_context(open_profile(path)) for path in paths]
        columns = [Column(identify(profile), make_overview(profile)) for profile in profiles]
        if len(columns) == 1:
            print_summary(console, columns[0].identity, columns[0].overview)
        else:
            print_comparison(console, columns)
