"""Traces of many ranks imported, each to a profile of its own, where the engine puts it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_hex

from neuron_profile.analysis.ranks.spread import Engine, Progress, in_order, spread
from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen
from neuron_tools.profile.importers.import_profile import ImportReport
from neuron_tools.profile.lockdown.import_process import import_apart
from neuron_tools.profile.store import layout

_UNFINISHED = ".importing"


@frozen
class RankImport:
    """One trace and the profile to make of it."""

    trace: str
    profile: str
    arguments: bool = True


def import_ranks(
    imports: Sequence[RankImport],
    engine: Engine,
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> tuple[ImportReport, ...]:
    """Make a profile of each trace; all of them stand in folders that every worker reaches.

    Args:
        force: Whether to replace profiles that exist.
        progress: Called with the traces done and all of them.

    Raises:
        TraceError: A file is in no known format, or nothing of it can be used.
        UsageError: Two have the same destination, or one exists and `force` is False.
    """
    targets = [each.profile for each in imports]
    if len(set(targets)) < len(targets):
        raise UsageError("Two traces would become the same profile: give their files different names.")
    for target in targets:
        if not force and Path(target).exists():
            raise UsageError(f"{target} exists: choose another folder with -o, or replace it with --force.")
    mark = token_hex(4)
    try:
        return tuple(in_order(spread(partial(import_rank, mark=mark), imports, engine, progress)))
    finally:
        _sweep(targets, mark)


def import_rank(work: RankImport, mark: str) -> ImportReport:
    """Import one trace in a process that may do nothing else; a profile that stands there is replaced.

    The profile takes its place when it is whole, so that what a lost worker began is never seen.

    Args:
        mark: In the names of the folders that are written meanwhile.
    """
    target = Path(work.profile)
    with tempfile.TemporaryDirectory(
        prefix=f".{target.name}.{mark}.", suffix=_UNFINISHED, dir=target.parent
    ) as folder:
        made = Path(folder) / target.name
        report = import_apart([work.trace], made, arguments=work.arguments)
        if target.exists():
            layout.read_manifest(target)  # nothing but a profile is replaced
            os.replace(target, Path(folder) / "replaced")
        os.replace(made, target)
    return replace(report, path=target)


def _sweep(targets: Sequence[str], mark: str) -> None:
    """Remove what lost workers of this run began."""
    for parent in {Path(target).parent for target in targets}:
        for folder in parent.glob(f".*.{mark}.*{_UNFINISHED}"):
            shutil.rmtree(folder, ignore_errors=True)
