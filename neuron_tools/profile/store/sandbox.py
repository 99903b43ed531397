"""What SQL over a profile may do: read its tables. Nothing else.

A query comes from a user, a link or a colleague's notebook, so it gets no file, no network, no settings,
bounded memory and bounded time. Three layers hold this: DuckDB's own switches (no external access outside
the profile's directory, configuration locked), the rule that only reading statements pass, and a timer.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.schema import no_such_table
from neuron_tools.profile.store.alarms import ALARMS
from neuron_tools.profile.store.catalog import text_literal

if TYPE_CHECKING:
    import duckdb

DEFAULT_MEMORY_LIMIT = "1GiB"
DEFAULT_TIMEOUT_S = 300.0
TOO_MUCH_MEMORY = "The query needs more memory than its limit: aggregate or narrow it, or raise the limit."

_PRAGMA = re.compile(r"(\s|/\*.*?\*/|--[^\n]*\n)*PRAGMA\b", re.IGNORECASE | re.DOTALL)
_UNKNOWN_TABLE = re.compile(r"Catalog Error: Table with name (?P<name>\S+) does not exist!")
_WORD = re.compile(rb"\w+")
_READING = {b"SELECT", b"WITH", b"FROM", b"PIVOT", b"PIVOT_WIDER"}
_WRITING = {b"INSERT", b"UPDATE", b"DELETE", b"MERGE", b"COPY", b"CREATE", b"INTO", b"EXPORT", b"ATTACH"}
_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(ANALYZE\s+)?(\([^)]*\)\s*)?", re.IGNORECASE)


class QueryError(NeuronToolsError):
    """A query was refused, is wrong, or took too much."""


def lock_down(connection: duckdb.DuckDBPyConnection, directory: str, memory_limit: str) -> None:
    """Take from a connection and its cursors everything but reading files below a folder, for good.

    Every setting is global: a cursor is a session of its own, without the settings of other sessions.

    Args:
        directory: A folder, or the protocol of a file system that the connection knows, `nprof://`.
        memory_limit: As DuckDB spells it, e.g. "1GiB".

    Raises:
        QueryError: The memory limit is none.
    """
    _limit_memory(connection, memory_limit)
    for statement in (
        "SET GLOBAL temp_directory = ''",
        "SET GLOBAL parquet_metadata_cache = true",  # else each query parses the footers of all parts anew
        "SET GLOBAL python_enable_replacements = false",
        "SET GLOBAL autoinstall_known_extensions = false",
        "SET GLOBAL autoload_known_extensions = false",
        f"SET GLOBAL allowed_directories = [{text_literal(directory)}]",
        "SET GLOBAL enable_external_access = false",
        "SET GLOBAL lock_configuration = true",
    ):
        connection.execute(statement)


def _limit_memory(connection: duckdb.DuckDBPyConnection, memory_limit: str) -> None:
    import duckdb

    try:
        connection.execute(f"SET memory_limit = {text_literal(memory_limit)}")
    except duckdb.Error as error:
        raise QueryError(f"{memory_limit!r} is no memory limit: write it like 512MiB or 4GiB.") from error


def check_query(query: str) -> None:
    """Let a single reading statement pass.

    Raises:
        QueryError: It is something else, several statements, or no valid SQL.
    """
    import duckdb

    kinds = _statement_kinds(query)
    if kinds == [duckdb.StatementType.EXPLAIN]:
        kinds = _statement_kinds(_EXPLAIN.sub("", query, count=1))
    if not kinds:
        raise QueryError("The query is empty.")
    if len(kinds) > 1:
        raise QueryError("One query at a time: remove the statements after the first.")
    if kinds[0] == duckdb.StatementType.MULTI and _is_reading_pivot(query):
        return
    if kinds[0] != duckdb.StatementType.SELECT:
        raise QueryError(
            f"A profile is read-only: {kinds[0].name} is not allowed, only SELECT, WITH, FROM, PIVOT, "
            "DESCRIBE, SUMMARIZE and EXPLAIN are."
        )


def _is_reading_pivot(query: str) -> bool:
    """Whether a statement that DuckDB runs in steps is a PIVOT, which first collects the new columns."""
    import duckdb

    starts = [start for start, kind in duckdb.tokenize(query) if kind == duckdb.token_type.keyword]
    words = [_WORD.match(query.encode(), start) for start in starts]  # offsets are in bytes
    keywords = [word[0].upper() for word in words if word]
    return keywords[:1] != [] and keywords[0] in _READING and not _WRITING.intersection(keywords)


def _statement_kinds(query: str) -> list[duckdb.StatementType]:
    import duckdb

    try:
        statements = duckdb.extract_statements(query)
        if any(_PRAGMA.match(statement.query) for statement in statements):  # older DuckDB: a SELECT
            raise QueryError("A profile is read-only: PRAGMA is not allowed.")
        return [statement.type for statement in statements]
    except duckdb.Error as error:
        raise QueryError(_message(error)) from error
    except ValueError as error:  # a statement this duckdb package cannot classify
        raise QueryError("A profile is read-only: this kind of statement is not allowed.") from error


@contextmanager
def bounded(connection: duckdb.DuckDBPyConnection, timeout_s: float) -> Iterator[None]:
    """Run what is inside for at most `timeout_s`, and turn DuckDB's errors into QueryError.

    Raises:
        QueryError: The time is over, or DuckDB refuses what is asked.
    """
    import duckdb

    expired = threading.Event()

    def interrupt() -> None:
        expired.set()
        connection.interrupt()

    alarm = ALARMS.after(timeout_s, interrupt)
    try:
        yield
    except duckdb.Error as error:
        if expired.is_set():
            raise QueryError(took_too_long(timeout_s)) from error
        raise QueryError(_message(error)) from error
    finally:
        alarm.cancel()


def took_too_long(timeout_s: float) -> str:
    """The sentence for a query that was stopped."""
    return f"The query took longer than {timeout_s:g} s and was stopped: narrow it, or raise the limit."


def _message(error: duckdb.Error) -> str:
    import duckdb

    if isinstance(error, duckdb.PermissionException):
        return "A query reads the profile's tables only: files and the network are out of reach."
    if isinstance(error, duckdb.OutOfMemoryException):
        return TOO_MUCH_MEMORY
    unknown = _UNKNOWN_TABLE.match(str(error))
    if unknown:
        return no_such_table(unknown["name"])
    return " ".join(str(error).split("\n\nLINE")[0].split())
