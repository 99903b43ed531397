"""Runs the passes: from calls in program order to calls in the order of issue, with places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from neuron_tools.backend.allocate import NoPlaceError, Places, allocate
from neuron_tools.backend.bank_copies import share_banks
from neuron_tools.backend.blocks import split_blocks
from neuron_tools.backend.body import KIND, Body
from neuron_tools.backend.broadcasts import spread_rows
from neuron_tools.backend.changes import changes_of
from neuron_tools.backend.copies import drop_copies
from neuron_tools.backend.early_copies import empty_early
from neuron_tools.backend.fills import drop_fills
from neuron_tools.backend.fission import split_loops
from neuron_tools.backend.in_psum import keep_in_psum
from neuron_tools.backend.kinds import Kind
from neuron_tools.backend.merge import merge_transfers
from neuron_tools.backend.nests import fuse_nests
from neuron_tools.backend.psum_reads import read_in_psum
from neuron_tools.backend.queues import choose_queues
from neuron_tools.backend.redundant import drop_redundant
from neuron_tools.backend.schedule import schedule, with_preferred_engines
from neuron_tools.backend.spill import WorkingSetError, spill
from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen
from neuron_tools.records.program import Memory, Opcode

_CHANGES: tuple[tuple[str, Callable[[Body], Body], bool], ...] = (
    ("blocks", split_blocks, False),
    ("in_psum", keep_in_psum, True),
    ("broadcasts", spread_rows, True),
    ("fills", drop_fills, False),
    ("copies", drop_copies, True),
    ("nests", fuse_nests, True),
    ("redundant", drop_redundant, True),
    ("fission", split_loops, True),
    ("psum_reads", read_in_psum, True),
    ("bank_copies", share_banks, True),
    ("merge", merge_transfers, True),
)
"""Passes that change calls: name, function, and whether they need open loops."""
PASSES = (*(name for name, _, _ in _CHANGES), "spill", "queues", "schedule")
"""Names of the passes, in order."""
_NEED_PSUM = ("psum_reads", "fission", "in_psum", "broadcasts")
"""Passes that hold more tiles in PSUM, in the order in which they are left out where it is full."""
_BOUND = (Opcode.EVENT_SEMAPHORE, Opcode.NOP, Opcode.RANDOM, Opcode.DROPOUT)
"""Opcodes whose place among the others is their meaning."""
_SHARES = (1.0, 0.87, 0.8, 0.7, 0.6, 0.5)
"""Parts of SBUF that buffers may take: less where fragments keep one from finding a place."""


@frozen
class Options:
    """Which passes run.

    Attributes:
        off: Names of passes to leave out.
    """

    off: frozenset[str] = frozenset()

    def runs(self, name: str) -> bool:
        """Whether a pass runs."""
        return name not in self.off


SCHEDULES = ("compiled", "written")
SCHEDULE_VARIABLE = "NEURON_TOOLS_SCHEDULE"
WRITTEN = Options(frozenset(PASSES) - {"blocks", "broadcasts", "fills", "spill"})
"""The kernel's own order, on the engines that it names or the instruction set names first."""


def asked_options(environment: Mapping[str, str]) -> Options:
    """The passes that a capture asks for by `$NEURON_TOOLS_SCHEDULE`: "compiled", the default, or "written".

    Raises:
        UsageError: It asks for something else.
    """
    chosen = environment.get(SCHEDULE_VARIABLE) or "compiled"
    if chosen not in SCHEDULES:
        raise UsageError(f"{SCHEDULE_VARIABLE} is '{chosen}': choose compiled or written.")
    return WRITTEN if chosen == "written" else Options()


def run_passes(body: Body, options: Options | None = None) -> tuple[Body, Places]:
    """The body in its order of issue, and the places of its buffers.

    Raises:
        NoPlaceError: What lives at one time does not fit.
        WorkingSetError: A call's own operands do not fit in SBUF.
    """
    options = options or Options()
    try:
        return _passed(body, options)
    except NoPlaceError as error:
        if error.memory is not Memory.PSUM:
            raise
        needs_psum = next((name for name in _NEED_PSUM if options.runs(name)), None)
        if needs_psum is not None:
            return run_passes(body, replace(options, off=options.off | {needs_psum}))
        emptied = empty_early(body)
        if emptied is body:
            raise
        return run_passes(emptied, options)


def _passed(body: Body, options: Options) -> tuple[Body, Places]:
    for name, change, needs_open_loops in _CHANGES:
        if options.runs(name) and (body.loops_open or not needs_open_loops):
            body = _noted(name, body, change(body))
    spilled, places = _placed(body, options)
    body = _noted("spill", body, spilled)
    if options.runs("queues") and body.loops_open:
        body = choose_queues(body)
    if options.runs("schedule") and _may_move(body):
        return schedule(body, places), places
    return with_preferred_engines(body), places


def _noted(name: str, before: Body, after: Body) -> Body:
    """What a pass made, with a note of what it changed."""
    return replace(after, changes=before.changes + changes_of(name, before, after))


def _placed(body: Body, options: Options) -> tuple[Body, Places]:
    """The body with spills and places; where fragments leave no place, tighter, and then with more spills."""
    if not options.runs("spill"):
        return body, allocate(body)
    from neuron_tools.backend.allocation_kernel import LOWEST, MATCHING, NEXT

    failed: NoPlaceError | None = None
    for searches in ((NEXT, MATCHING), (LOWEST,)):
        for share in _SHARES:
            try:
                fitting = spill(body, share)
            except WorkingSetError:
                if share == _SHARES[0]:
                    raise
                break
            for search in searches:
                try:
                    return fitting, allocate(fitting, search)
                except NoPlaceError as error:
                    if error.memory is not Memory.SBUF:
                        raise
                    failed = error
    assert failed is not None
    raise failed


def _may_move(body: Body) -> bool:
    """Whether calls may change places: not where cores wait for each other or random numbers are drawn."""
    used = np.unique(body.rows[:, KIND])
    return not any(_is_bound(body.kinds[number]) for number in used.tolist())


def _is_bound(kind: Kind) -> bool:
    transfer = kind.transfer
    if transfer is not None:
        between_tiles = transfer.source_memory is Memory.SBUF and transfer.destination_memory is Memory.SBUF
        return transfer.collective is not None or between_tiles
    return any(step.opcode in _BOUND for step in kind.steps)
