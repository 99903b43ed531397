"""What the tables of one traced process in a rocpd database say of nodes, processes, threads and agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from neuron_tools.profile.importers.json_text import loads, whole_number
from neuron_tools.profile.importers.recording import Recording
from neuron_tools.profile.importers.sqlite_file import SqliteFile
from neuron_tools.profile.importers.sqlite_lookup import SqliteLookup
from neuron_tools.profile.importers.sqlite_rows import timed_rows

PREFIX = "rocpd_"
_STRINGS = "rocpd_string"
_PLACES = ("pid", "tid", "agent_id", "queue_id", "stream_id")
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
_MOST_RANKS = 1 << 20
_MOST_DEVICES = 1 << 10


class Agent(NamedTuple):
    """A GPU: its number among those of its node, and what is told of it."""

    device: int
    name: str | None
    compute_units: int | None


class ToldProcess(NamedTuple):
    """A process as the database tells it."""

    process_id: int
    command: str | None
    host: str | None
    rank: int | None
    world_size: int | None


def endings(database: SqliteFile) -> list[str]:
    """What the names of each traced process's tables end with: nothing, or `_` and its unique number."""
    found = [name.removeprefix(_STRINGS) for name in database.columns if name.startswith(_STRINGS)]
    return sorted(ending for ending in found if not ending or ending.startswith("_"))


def base_name(table: str, known_endings: Sequence[str]) -> str:
    """The name of a table without its ending."""
    fitting = [ending for ending in known_endings if ending and table.endswith(ending)]
    return table.removesuffix(fitting[0]) if fitting else table


class Session:
    """The tables of one traced process.

    Args:
        database: Has them.
        ending: What their names end with.
        recording: Receives warnings.

    Raises:
        TraceError: The database is damaged or has more rows than any trace.
    """

    def __init__(self, database: SqliteFile, ending: str, recording: Recording) -> None:
        self._database = database
        self._ending = ending
        self._recording = recording
        self.strings = self.lookup("string", texts=["string"])
        self._categories = self.lookup("info_category", texts=["name"])
        self.tracks = self.lookup("track", integers=[*_PLACES, "name_id"])
        self._events = SqliteLookup(
            database,
            self._name("event"),
            "id",
            integers=["category_id", "stack_id"],
            texts=["extdata", "call_stack", "line_info"],
            blank="{}",
        )
        self.names = {kind: self._named(f"info_{kind}") for kind in ("queue", "stream")}
        self.processes = self._told_processes()
        self.threads = self._told_threads()
        self.agents = self._told_agents()

    def lookup(
        self, base: str, key: str = "id", *, integers: Sequence[str] = (), texts: Sequence[str] = ()
    ) -> SqliteLookup:
        """A table by the number of its rows."""
        return SqliteLookup(self._database, self._name(base), key, integers=integers, texts=texts)

    def has(self, base: str) -> bool:
        """Whether a table is there and not empty."""
        return self._database.has_rows(self._name(base))

    def batches(
        self, base: str, integers: Sequence[str], texts: Sequence[str] = (), numbers: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Rows of a table in chunks."""
        yield from self._database.batches(self._name(base), integers, texts, numbers)

    def timed(
        self, base: str, integers: Sequence[str], texts: Sequence[str] = (), start: str = "start"
    ) -> Iterator[pa.RecordBatch]:
        """Rows that have a time, in chunks; where they ran stands in the row or in its track."""
        known = self._database.columns.get(self._name(base), frozenset())
        for batch in self.batches(base, [start, *integers, "track_id", "event_id"], texts):
            rows = timed_rows(batch, start, f"{PREFIX}{base}", self._recording)
            if rows.num_rows:
                columns = {name: rows[name] for name in rows.schema.names}
                for name in _PLACES:
                    if "track_id" in known and name in columns and name not in known:
                        columns[name] = self.tracks.look_up(rows["track_id"], name)
                yield pa.RecordBatch.from_pydict(columns)

    def event(self, rows: pa.RecordBatch, column: str) -> pa.Array:
        """A column of the events of rows."""
        return self._events.look_up(rows["event_id"], column)

    def categories(self, rows: pa.RecordBatch) -> pa.Array:
        """What the events of rows are; null where it is not told."""
        numbers = self.event(rows, "category_id")
        return (self._categories if len(self._categories) else self.strings).look_up(numbers)

    def _name(self, base: str) -> str:
        return f"{PREFIX}{base}{self._ending}"

    def _named(self, base: str) -> dict[int, str]:
        rows = self._rows(base, ["id"], ["name"])
        return {row["id"]: row["name"] for row in rows if row["id"] is not None and row["name"]}

    def _rows(self, base: str, integers: Sequence[str], texts: Sequence[str]) -> list[dict[str, Any]]:
        """All rows of a small table."""
        return [row for batch in self.batches(base, integers, texts) for row in batch.to_pylist()]

    def _told_processes(self) -> dict[int, ToldProcess]:
        hosts = {row["id"]: row["hostname"] for row in self._rows("info_node", ["id"], ["hostname"])}
        found = {}
        for row in self._rows("info_process", ["id", "pid", "nid"], ["command", "environment"]):
            if row["id"] is not None and row["pid"] is not None:
                variables = _object(row["environment"])
                found[row["id"]] = ToldProcess(
                    row["pid"],
                    row["command"] or None,
                    hosts.get(row["nid"]) or None,
                    _first_number(variables, _RANKS),
                    _first_number(variables, _SIZES),
                )
        return found

    def _told_threads(self) -> dict[int, tuple[int, str | None]]:
        rows = self._rows("info_thread", ["id", "tid"], ["name"])
        return {row["id"]: (row["tid"], row["name"] or None) for row in rows if row["tid"] is not None}

    def _told_agents(self) -> dict[int, Agent]:
        """The GPUs, by the number of their row."""
        found: dict[int, Agent] = {}
        rows = self._rows("info_agent", ["id", "type_index"], ["type", "product_name", "name", "extdata"])
        for row in rows:
            if row["type"] == "GPU" and row["id"] is not None:
                told = whole_number(row["type_index"], _MOST_DEVICES)
                units = whole_number(_object(row["extdata"]).get("cu_count"), 1 << 32)
                device = len(found) if told is None else told
                found[row["id"]] = Agent(device, row["product_name"] or row["name"], units)
        return found


def _object(text: str | None) -> dict[str, Any]:
    """A JSON object; an empty one for anything else."""
    try:
        found = loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _first_number(variables: dict[str, Any], names: Sequence[str]) -> int | None:
    texts = [str(variables[name]) for name in names if name in variables]
    numbers = [int(text) for text in texts if text.isascii() and text.isdecimal() and len(text) < 8]
    return next((number for number in numbers if number < _MOST_RANKS), None)
