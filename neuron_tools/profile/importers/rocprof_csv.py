"""rocprofiler: the CSV files of `rocprofv3`: traces of kernels, copies, markers and of the HIP and HSA APIs.

Each file has one kind of row, told by its columns. Kernels stand on the queues of their agents, copies on a
line of their own, calls on the threads of their process.
"""

from __future__ import annotations

import codecs
import csv
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.json_columns import lists_of_columns, objects_of_columns
from neuron_tools.profile.importers.json_decode import LARGEST_TIME
from neuron_tools.profile.importers.lanes import NO_NUMBER, Lanes
from neuron_tools.profile.importers.recording import LANE, Clock, Recording
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "rocprofiler CSV"
_TIMES = ("Start_Timestamp", "End_Timestamp")
_MARKS = frozenset({"Domain", "Kind"})
_MOST_COLUMNS = 256
_CATEGORIES = {
    "HIP": "hip_runtime",
    "HSA": "hsa",
    "RCCL": "rccl",
    "MARKER": "user_annotation",
}


def recognise(head: Head) -> bool:
    """Whether the first line names rocprofv3's columns."""
    line = head.text[:8192].split(b"\n", 1)[0]
    return b"Start_Timestamp" in line and bool(_MARKS & set(_fields(line)))


def read(file: TraceFile, recording: Recording) -> None:
    """Stages the rows.

    Raises:
        TraceError: The lines do not have the columns that the first one names.
    """
    lanes = Lanes(recording, lambda device: f"GPU {device}")
    try:
        for batch in _batches(file, recording):
            _stage(_Rows(batch), lanes, recording)
    except pa.ArrowException as error:
        sentence = " ".join(str(error).split())[:200]
        raise TraceError(f"{file.path} is no valid CSV ({sentence}).") from error
    recording.clock = Clock(None)
    if file.is_truncated:
        recording.warn("The file ends in the middle; what stands before was imported.")


def _fields(line: bytes) -> list[str]:
    try:
        return next(csv.reader([line.decode(errors="replace").strip()]), [])
    except csv.Error:
        return []


def _batches(file: TraceFile, recording: Recording) -> Any:
    names = _fields(file.head[:8192].removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0])
    if len(names) > _MOST_COLUMNS or len(set(names)) < len(names):
        raise TraceError(f"{file.path} is no trace of rocprofv3: its columns are not told apart.")
    convert = arrow_csv.ConvertOptions(
        column_types={name: pa.string() for name in names}, quoted_strings_can_be_null=False
    )

    def leave_out(_: Any) -> str:
        recording.warn("Rows with another number of columns were left out.")
        return "skip"

    parse = arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=leave_out)
    stream = io.BufferedReader(_Blocks(file))
    return arrow_csv.open_csv(stream, parse_options=parse, convert_options=convert)


class _Blocks(io.RawIOBase):
    """The unpacked content as a stream, with what is not UTF-8 replaced."""

    def __init__(self, file: TraceFile) -> None:
        self._blocks = file.blocks()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = b""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer; 0 at the end."""
        while not self._rest and (block := next(self._blocks, b"")):
            self._rest = self._decoder.decode(block).encode()
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


class _Rows:
    """Rows with a time; columns that the file lacks are null."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        start = self.integers(_TIMES[0])
        self._batch = batch.filter(start.is_valid())
        self.left_out = batch.num_rows - self._batch.num_rows

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def texts(self, name: str) -> pa.Array:
        """Texts of a column."""
        if name not in self._batch.schema.names:
            return pa.nulls(self._batch.num_rows, pa.string())
        return self._batch.column(name)

    def integers(self, name: str) -> pa.Array:
        """Whole numbers of a column, also behind words such as `Agent 4`; null where there is none."""
        digits = pc.extract_regex(self.texts(name), r"^(?:[A-Za-z]+ )?(?P<number>\d{1,18})$")
        return pc.struct_field(digits, "number").cast(pa.int64())

    def numbers(self, name: str, otherwise: int = 0) -> Ints:
        """As `integers`, without nulls."""
        values: Ints = self.integers(name).fill_null(otherwise).to_numpy(zero_copy_only=False)
        return values


def _stage(rows: _Rows, lanes: Lanes, recording: Recording) -> None:
    recording.warn("Rows without a time were left out.", count=rows.left_out)
    if not len(rows):
        return
    start = np.minimum(rows.numbers(_TIMES[0]), LARGEST_TIME)
    columns: dict[str, Any] = {
        "start_ts": pa.array(start),
        "end_ts": pa.array(np.minimum(rows.numbers(_TIMES[1], -1), LARGEST_TIME)),
        "correlation_id": rows.integers("Correlation_Id"),
    }
    is_kernel = bool(rows.texts("Kernel_Name").null_count < len(rows))
    is_copy = bool(rows.texts("Direction").null_count < len(rows))
    columns |= (
        _kernels(rows, lanes) if is_kernel else _copies(rows, lanes) if is_copy else _calls(rows, lanes)
    )
    lanes.add_spans(columns)


def _kernels(rows: _Rows, lanes: Lanes) -> dict[str, Any]:
    devices, queues = _devices(rows.numbers("Agent_Id")), rows.numbers("Queue_Id")
    sizes = {"grid": "Grid_Size", "workgroup": "Workgroup_Size"}
    members = {
        name: lists_of_columns(*(rows.integers(f"{column}_{axis}") for axis in "XYZ"))
        for name, column in sizes.items()
    }
    return {
        LANE: lanes.streams(_unknown(rows), devices, queues),
        "name": rows.texts("Kernel_Name").fill_null("kernel").dictionary_encode(),
        "category": pa.repeat("kernel", len(rows)).dictionary_encode(),
        "arguments_json": objects_of_columns(members),
    }


def _copies(rows: _Rows, lanes: Lanes) -> dict[str, Any]:
    ends = [rows.numbers(f"{end}_Agent_Id") for end in ("Destination", "Source")]
    devices = _devices(np.maximum(*ends))
    direction = rows.texts("Direction").fill_null("")
    short = pc.replace_substring_regex(
        direction, r"^(?:MEMORY_COPY_)?(HOST|DEVICE)_TO_(HOST|DEVICE)$", r"\1to\2"
    )
    short = pc.replace_substring(pc.replace_substring(short, "HOST", "H"), "DEVICE", "D")
    return {
        LANE: lanes.streams(_unknown(rows), devices, np.full(len(rows), 1 << 20), "copies"),
        "name": pc.binary_join_element_wise("Memcpy", short, " ").dictionary_encode(),
        "category": pa.repeat("gpu_memcpy", len(rows)).dictionary_encode(),
    }


def _calls(rows: _Rows, lanes: Lanes) -> dict[str, Any]:
    processes = rows.numbers("Process_Id", NO_NUMBER)
    domain = rows.texts("Domain").fill_null("").dictionary_encode()
    categories = [_CATEGORIES.get(text.split("_")[0], text.lower()) for text in domain.dictionary.to_pylist()]
    return {
        LANE: lanes.threads(processes, rows.numbers("Thread_Id")),
        "name": rows.texts("Function").fill_null("").dictionary_encode(),
        "category": pa.array(categories, pa.string()).take(domain.indices).dictionary_encode(),
    }


def _devices(agents: Ints) -> Ints:
    """Numbers of devices: those of agents, as CSV files do not say which are GPUs."""
    return np.clip(agents, 0, 1 << 10)


def _unknown(rows: _Rows) -> Ints:
    return np.full(len(rows), NO_NUMBER, np.int64)
