"""The process that runs foreign SQL: it gets a profile's folder, gives everything else away, and answers.

Started by `query_worker` with one socket. Requests come pickled, for they come from the process that started
this one; answers go as JSON and Arrow, for that process trusts nothing of this one.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import select
import socket
import struct
import sys
from io import BufferedRWPair
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet  # loaded before the files are out of reach

from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.lockdown import kernel
from neuron_tools.profile.schema import no_such_table
from neuron_tools.profile.store import layout, sandbox
from neuron_tools.profile.store.catalog import create_views, read_catalog
from neuron_tools.profile.store.stored_catalog import open_catalog

if TYPE_CHECKING:
    from neuron_tools.profile.store.catalog import Catalog

MOST_FILES = 1024
OWN_FIGURES = (Path("/proc/self"), Path("/sys/fs/cgroup"))
"""Where the database and the limits read what this process has and may have."""
STACKS_BYTES = 96 << 20
"""Address space for the database's threads and caches beside the memory that it counts."""
UNITS = {"bytes": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4}
LENGTH = struct.Struct("<Q")


def main(handle: int) -> None:
    """Answer requests until the other side closes."""
    channel = socket.socket(fileno=handle)
    stream = channel.makefile("rwb")
    _load_lazily_loaded()
    folder, range_ns, memory_limit = _receive(stream)
    kernel.limit_resources(files=MOST_FILES, file_bytes=0)
    kernel.read_only_below([Path(folder), *filter(Path.exists, OWN_FIGURES)])
    kernel.refuse_system_calls()
    Thread(target=_end_with, args=(channel,), daemon=True).start()
    try:
        database = _open(Path(folder), range_ns, memory_limit)
    except NeuronToolsError as error:
        _send(stream, {"error": str(error)})
        return
    _send(stream, {})
    while True:
        _answer(stream, database, *_receive(stream))


def _open(folder: Path, range_ns: tuple[int, int] | None, memory_limit: str) -> duckdb.DuckDBPyConnection:
    """A database that shows the profile's tables, and the limit of its memory."""
    database = duckdb.connect(":memory:")  # its threads may as little as this one
    create_views(database, _catalog(folder), range_ns)
    sandbox.lock_down(database, str(folder), memory_limit)
    kernel.limit_memory(_bytes(database) + STACKS_BYTES)
    return database


def _catalog(folder: Path) -> Catalog:
    return open_catalog(folder) if (folder / layout.MANIFEST_NAME).exists() else read_catalog(folder)


def _bytes(database: duckdb.DuckDBPyConnection) -> int:
    """The memory limit that the database took: it reads "1GiB", "512 MB" and "80%"."""
    row = database.execute("SELECT current_setting('memory_limit')").fetchone()
    number, unit = re.fullmatch(r"([\d.]+) (\w+)", str(row and row[0])).groups()  # type: ignore[union-attr]  # DuckDB always writes it so
    return int(float(number) * 1024 ** UNITS[unit])


def _load_lazily_loaded() -> None:
    """Do what loads code, which cannot be loaded later. It starts no thread of the database.

    The kernel restricts the thread that asks for it, and those that it starts then.
    """
    no_such_table("")
    table = pa.table({"one": [1]})
    with pa.ipc.new_stream(pa.BufferOutputStream(), table.schema) as writer:
        writer.write_table(table)


def _answer(
    stream: BufferedRWPair,
    database: duckdb.DuckDBPyConnection,
    query: str,
    parameters: Any,
    most_rows: int | None,
    timeout_s: float,
) -> None:
    kernel.limit_processor_time((timeout_s + 1) * (os.cpu_count() or 1))
    try:
        sandbox.check_query(query)
        with database.cursor() as cursor, sandbox.bounded(cursor, timeout_s):
            relation = cursor.sql(query, params=parameters or None)
            table = (relation if most_rows is None else relation.limit(most_rows)).to_arrow_table()
        _check_times(table)
    except NeuronToolsError as error:
        _send(stream, {"error": str(error)})
        return
    except (MemoryError, pa.ArrowException):
        _send(stream, {"error": sandbox.TOO_MUCH_MEMORY})
        return
    except (RecursionError, UnicodeError, ValueError, TypeError) as error:
        _send(stream, {"error": f"The query cannot be run: {' '.join(str(error).split())}."})
        return
    _write(stream, {})
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    stream.flush()  # now: the other side wakes up once


def _check_times(table: pa.Table) -> None:
    """Refuse times that Python has not, which nothing that shows the table could show.

    Raises:
        QueryError: A column holds some.
    """
    for name, column in zip(table.column_names, table.columns):
        try:
            if _has_times(column.type):
                column.to_pylist()
        except (OverflowError, ValueError) as error:
            raise sandbox.QueryError(
                f"Column '{name}' holds times before the year 1 or after 9999: write CAST(... AS VARCHAR)."
            ) from error


def _has_times(kind: pa.DataType) -> bool:
    if pa.types.is_temporal(kind):
        return True
    return any(_has_times(kind.field(number).type) for number in range(kind.num_fields))


def _receive(stream: BufferedRWPair) -> Any:
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        os._exit(0)
    return pickle.loads(stream.read(LENGTH.unpack(head)[0]))


def _send(stream: BufferedRWPair, answer: dict[str, str]) -> None:
    _write(stream, answer)
    stream.flush()


def _write(stream: BufferedRWPair, answer: dict[str, str]) -> None:
    data = json.dumps(answer).encode()
    stream.write(LENGTH.pack(len(data)) + data)


def _end_with(channel: socket.socket) -> None:
    """End when the process that asks has ended, also in the middle of a query."""
    watch = select.poll()
    watch.register(channel, select.POLLHUP)
    watch.poll()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
