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
from neuron_explorer.timeline.track_list import track_list
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen

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
    steps: list[Callable[[], object]] = [partial(import_module, module) for module in MODULES]
    entries = library.entries()
    if len(entries) == 1:
        alone = _Alone(library, analyses, entries[0].id)
        steps += [alone.list_tracks, _lay_nothing_out, alone.read_operations]
    else:
        steps.append(_lay_nothing_out)
    for step in steps:
        if ending.is_set():
            return
        with suppress(ImportError, NeuronToolsError):  # whoever opens the page is told what is wrong
            step()


def compile_loops() -> None:
    """Compile the loops that draw a timeline, unless they are compiled, and keep them for later processes."""
    from neuron_tools.profile.timeline.drawing import DRAW_KERNEL

    _lay_nothing_out()
    DRAW_KERNEL.wait()


def _lay_nothing_out() -> None:
    """Load the compiled kernel of charged time, with the types that the timeline gives it."""
    from neuron_profile.analysis.time.pieces import pieces_of
    from neuron_tools.profile.exposure import OrderedSpans, Spans

    nothing = np.zeros(0, np.int64)
    pieces_of(OrderedSpans.of([Spans(nothing, nothing)]), nothing)


@frozen
class _Alone:
    """The library's only profile, read in the order in which its timeline asks."""

    library: ProfileLibrary
    analyses: Analyses
    profile: str

    def list_tracks(self) -> None:
        track_list(self.library.get(self.profile), self.profile, self._range_ns)

    def read_operations(self) -> None:
        prepare(self.library.get(self.profile), self._range_ns)

    @property
    def _range_ns(self) -> tuple[int, int] | None:
        opening = opening_ns(Address(profile=self.profile), self.analyses)
        return opening and with_margin(*opening)
