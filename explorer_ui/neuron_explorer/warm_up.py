"""Loads what the first page of a profile needs while nobody waits: it is asked for after the start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from threading import Event, Thread

import numpy as np

from neuron_explorer.address import Address
from neuron_explorer.analyses import Analyses
from neuron_explorer.library import ProfileLibrary
from neuron_explorer.steps import opening_ns
from neuron_explorer.timeline.page import with_margin
from neuron_explorer.timeline.routes import prepare
from neuron_tools.errors import NeuronToolsError

MODULES = ("duckdb", "orjson", "pyarrow.compute")


@contextmanager
def warmed_up(library: ProfileLibrary, analyses: Analyses) -> Iterator[Thread]:
    """Load modules and compiled kernels, and read the profile where the library has one alone, in a thread.

    On the way out what has begun is waited for: a process that ends within a query crashes.
    """
    ending = Event()
    thread = Thread(target=_load, args=(library, analyses, ending), name="warm-up", daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        ending.set()
        thread.join()


def _load(library: ProfileLibrary, analyses: Analyses, ending: Event) -> None:
    modules = [partial(import_module, module) for module in MODULES]
    steps: list[Callable[[], object]] = [*modules, _lay_nothing_out, partial(_read_alone, library, analyses)]
    for step in steps:
        if ending.is_set():
            return
        with suppress(ImportError, NeuronToolsError):  # whoever opens the page is told what is wrong
            step()


def _lay_nothing_out() -> None:
    """Load the compiled kernel of charged time, with the types that the timeline gives it."""
    from neuron_profile.analysis.time.exposure import OrderedSpans, Spans
    from neuron_profile.analysis.time.pieces import pieces_of

    nothing = np.zeros(0, np.int64)
    pieces_of(OrderedSpans.of([Spans(nothing, nothing)]), nothing)


def _read_alone(library: ProfileLibrary, analyses: Analyses) -> None:
    entries = library.entries()
    if len(entries) == 1:
        opening = opening_ns(Address(profile=entries[0].id), analyses)
        prepare(library.get(entries[0].id), opening and with_margin(*opening))
