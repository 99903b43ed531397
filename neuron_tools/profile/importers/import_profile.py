"""Traces of other tools in, one profile out: many files of many ranks on one clock."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path

from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen
from neuron_tools.profile.derive import DERIVED_TABLES, derive_tables
from neuron_tools.profile.derive.schema_fields import schema_fields
from neuron_tools.profile.importers import neuron_folder
from neuron_tools.profile.importers.assemble import assemble
from neuron_tools.profile.importers.clocks import relate
from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.formats import recognise
from neuron_tools.profile.importers.recording import Recording
from neuron_tools.profile.importers.refused import folder_refusal
from neuron_tools.profile.importers.trace_file import TraceFile
from neuron_tools.profile.placed_profile import placed_profile, refusal, require_place
from neuron_tools.profile.store import layout
from neuron_tools.profile.writer import ProfileWriter

DEVICE_TABLES = frozenset({"Instruction", "DmaPacketAggregated", "DmaPacket"})
_MAY_BE_EMPTY = frozenset({"ThrottleSummary", "SchemaFields"})
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
Progress = Callable[[int, int], None]
"""Called with (bytes read, bytes in all)."""


@frozen
class ImportReport:
    """What an import made.

    Attributes:
        path: The profile.
        formats: What each file was recognised as, by path as given.
        rows: Rows by table.
        warnings: What was left out or mended; also in the profile's Warning table.
    """

    path: Path
    formats: dict[str, str]
    rows: dict[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def import_traces(
    paths: Sequence[str | Path],
    destination: str | Path,
    *,
    progress: Progress | None = None,
    force: bool = False,
    arguments: bool = True,
) -> ImportReport:
    """Writes a profile from traces of other tools.

    Args:
        paths: Files, or folders of Parquet tables; the formats may differ. Several are taken as processes of
            one job.
        destination: The profile to make.
        progress: Told how far the reading has come.
        force: Whether to replace an existing profile.
        arguments: Whether spans of Chrome and torch.profiler traces keep their arguments; without, a third of
            the time is saved.

    Returns:
        What was made.

    Raises:
        UsageError: The destination exists and `force` is False, its folder does not exist, or no file was
            named.
        NotAProfileError: Something other than a profile would be replaced.
        TraceError: A file is in no known format, or nothing of it can be used.
        ProfileWriteError: The profile cannot be written.

    Example:
        >>> import_traces(["rank0.json.gz", "rank1.json.gz"], "job.nprof").rows["TraceSpan"]
        1830442
    """
    files = [Path(path) for path in paths]
    target = Path(destination)
    if not files:
        raise UsageError("Name at least one trace to import.")
    require_place(target, force=force)
    recordings: list[Recording] = []
    staging = _staging_folder(target)
    try:
        for number, path in enumerate(files):
            is_alone = len(files) == 1
            recordings.append(_read(path, staging / str(number), is_alone=is_alone, with_arguments=arguments))
            if progress is not None:
                progress(number + 1, len(files))
        return _write(recordings, target, force=force)
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        raise refusal(target, error) from error
    finally:
        for recording in recordings:
            recording.finish()
        shutil.rmtree(staging, ignore_errors=True)


def _staging_folder(target: Path) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".importing", dir=target.parent))
    except OSError as error:
        raise refusal(target, error) from error


def _read(path: Path, folder: Path, *, is_alone: bool, with_arguments: bool) -> Recording:
    folder.mkdir()
    if neuron_folder.is_folder_of_tables(path):
        recording = Recording(path, neuron_folder.NAME, folder)
        neuron_folder.read(path, recording, with_derived=is_alone)
        recording.finish()
        return recording
    if path.is_dir():
        raise TraceError(folder_refusal(path))
    file = TraceFile(path)
    found = recognise(file)
    recording = Recording(path, found.NAME, folder, with_arguments=with_arguments)
    found.read(file, recording)
    recording.finish()
    if not recording.row_counts:
        raise TraceError(f"{path} was recognised as {found.NAME}, but holds nothing that can be imported.")
    return recording


def _derive(recordings: Sequence[Recording], rows: dict[str, int], writer: ProfileWriter) -> None:
    """Tables that follow from device rows, as far as they were not given.

    A single file's own Summary is kept as its tool gave it.
    """
    missing = set(DERIVED_TABLES) - rows.keys()
    if DEVICE_TABLES & rows.keys() and missing - _MAY_BE_EMPTY:
        is_given = "ActiveTime" in rows
        derive_tables(
            writer.directory, writer, is_active_time_given=is_given, wanted=missing | {"ActiveTime"}
        )
        summary = recordings[0].summary if len(recordings) == 1 else None
        if summary is not None:
            writer.replace("Summary", {name: [value] for name, value in summary.items() if value is not None})
        return
    writer.flush()
    stored = {table for table, _ in layout.stored_tables(writer.directory)}
    writer.replace("SchemaFields", schema_fields(sorted(stored | {"SchemaFields"})))


def _write(recordings: Sequence[Recording], target: Path, *, force: bool) -> ImportReport:
    related = relate(recordings)
    metadata = {
        "imported_from": [str(recording.source) for recording in recordings],
        "formats": sorted({recording.format_name for recording in recordings}),
        "clock": related.description,
    }
    with placed_profile(target, metadata, force=force) as writer:
        rows = assemble(recordings, related, writer)
        _derive(recordings, rows, writer)
    warnings = [sentence for recording in recordings for sentence, _ in recording.warnings]
    return ImportReport(
        path=target,
        formats={str(recording.source): recording.format_name for recording in recordings},
        rows=rows,
        warnings=(*warnings, *related.warnings),
    )
