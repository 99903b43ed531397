"""Tables that follow from the recorded ones: computed when a capture or an import ends.

They need nothing but the event tables, so any profile that has Instruction or DMA rows gets them, whoever
wrote it. Time: a few seconds for ten million instructions; memory does not grow with their number: islands
of activity stand in a temporary file in the profile's folder, as does what the database cannot hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from neuron_tools.profile.derive.active_time import active_time
from neuron_tools.profile.derive.busy import BusyTime, read_busy_time
from neuron_tools.profile.derive.framework_node import framework_nodes
from neuron_tools.profile.derive.metadata import completed_metadata
from neuron_tools.profile.derive.opcode_summary import opcode_summary
from neuron_tools.profile.derive.peaks import read_peaks
from neuron_tools.profile.derive.schema_fields import schema_fields
from neuron_tools.profile.derive.summary import SummaryInput, device_extent, summary_metrics
from neuron_tools.profile.derive.throttle_summary import throttle_summary
from neuron_tools.profile.store import layout
from neuron_tools.profile.store.recorded import RecordedTables
from neuron_tools.profile.writer import ProfileWriter

DERIVED_TABLES = (
    "ActiveTime",
    "OpcodeSummary",
    "FrameworkNode",
    "ThrottleSummary",
    "Summary",
    "SchemaFields",
)


def derive_tables(
    directory: Path,
    writer: ProfileWriter,
    *,
    is_active_time_given: bool = False,
    wanted: Collection[str] = DERIVED_TABLES,
) -> None:
    """Compute derived tables of a profile and put them in the place of what is there.

    Args:
        directory: The profile; what `writer` holds is flushed first.
        writer: Writes the derived tables.
        is_active_time_given: Whether ActiveTime was recorded: what its tool says of an engine is kept.
        wanted: Which of them; the others stay as they are.

    Raises:
        ProfileWriteError: The disk is full or the directory cannot be written.
        NoSpaceError: What does not fit into memory does not fit on the disk either.
    """
    writer.flush()
    with RecordedTables(directory, spill_into=directory) as recorded:
        start_ns, end_ns = device_extent(recorded)
        metadata = completed_metadata(recorded, start_ns, end_ns)
        with read_busy_time(recorded, is_active_time_given=is_active_time_given) as busy:
            if "ActiveTime" in wanted:
                writer.replace_in_blocks("ActiveTime", active_time(busy))
            for table, rows in _derived(recorded, busy, end_ns - start_ns, wanted):
                writer.replace(table, rows)
    if metadata is not None:
        writer.replace("Metadata", metadata)
    stored = {table for table, _ in layout.stored_tables(directory)}
    writer.replace("SchemaFields", schema_fields(sorted(stored | {"SchemaFields"})))


def _derived(
    recorded: RecordedTables, busy: BusyTime, total_ns: int, wanted: Collection[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Names and columns of the wanted tables but ActiveTime."""
    peaks = read_peaks(recorded)
    if "OpcodeSummary" in wanted:
        yield "OpcodeSummary", opcode_summary(recorded, busy, total_ns)
    if "FrameworkNode" in wanted:
        yield "FrameworkNode", framework_nodes(recorded, busy, peaks)
    if "Summary" in wanted:
        given = SummaryInput(recorded, busy, peaks, total_ns, DERIVED_TABLES)
        yield "Summary", {name: [value] for name, value in summary_metrics(given).items()}
    throttling = throttle_summary(recorded, total_ns) if "ThrottleSummary" in wanted else None
    if throttling:
        yield "ThrottleSummary", throttling
