"""An importer: text files whose lines are `start_ns end_ns name`, after a first line `# stopwatch`."""

from __future__ import annotations

import pyarrow as pa

from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.recording import LANE, Process, Recording, Track
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "stopwatch"
MARK = b"# stopwatch"


def recognise(head: Head) -> bool:
    """Whether the file begins with the mark."""
    return head.text.startswith(MARK)


def read(file: TraceFile, recording: Recording) -> None:
    """Stage one span a line."""
    process = recording.add_process(Process(name=file.path.stem))
    lane = recording.add_lane(recording.add_track(Track(process, "stopwatch", "other")))
    lines = b"".join(file.blocks()).decode().splitlines()[1:]
    try:
        spans = [(int(start), int(end), name) for start, end, name in (line.split(None, 2) for line in lines)]
    except ValueError as error:
        raise TraceError(f"{file.path} has a line that is not `start_ns end_ns name`.") from error
    recording.append(
        "TraceSpan",
        {
            "id": pa.array(range(len(spans)), pa.int64()),
            LANE: pa.array([lane] * len(spans), pa.int32()),
            "start_ts": pa.array([start for start, _, _ in spans], pa.int64()),
            "end_ts": pa.array([end for _, end, _ in spans], pa.int64()),
            "name": pa.array([name for _, _, name in spans]),
        },
    )
