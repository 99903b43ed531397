"""Opens profiles: tables, SQL and the summary, read-only and lazily.

A profile that was cut off (a killed capture, a damaged disk) opens with what is whole, and says what is
missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neuron_tools.profile.lockdown.query_worker import (
    Interrupting,
    Query,
    QueryTarget,
    close_idle,
    no_interrupt,
    run_query,
)
from neuron_tools.profile.schema import table_schema
from neuron_tools.profile.store import layout, sandbox, source_lines
from neuron_tools.profile.store.catalog import Catalog, NamedViews, quoted, read_catalog
from neuron_tools.profile.store.damage import DamagedProfileError, reading
from neuron_tools.profile.store.frontier import STACKS_THROUGH, OwnCode, own_code_of
from neuron_tools.profile.store.kept_results import Kept, KeptResults
from neuron_tools.profile.store.layout import NotAProfileError
from neuron_tools.profile.store.remote import RemoteFolder, is_url, remote_folder
from neuron_tools.profile.store.rows import stored_row
from neuron_tools.profile.store.sandbox import QueryError
from neuron_tools.profile.store.stored_catalog import open_catalog
from neuron_tools.profile.timeline.scan import batches
from neuron_tools.profile.timeline.track import Track
from neuron_tools.profile.timeline.view import Timeline, TimelineError

__all__ = [
    "DamagedProfileError",
    "NotAProfileError",
    "Profile",
    "QueryError",
    "TimelineError",
    "Track",
    "open_profile",
]
if TYPE_CHECKING:
    import duckdb

DEFAULT_PIXELS = 2000
DEFAULT_SPANS = 100_000
DEFAULT_FOUND = 1000


class Profile:
    """An open profile. Make one with `open_profile`; close it, or use it in a `with` statement.

    Attributes:
        path: The profile's directory.
        metadata: What `profile.json` says; empty for a folder of Parquet tables without one.
        complete: Whether the capture ended as it should.
        missing: What could not be read, one sentence each; empty in a whole profile.
        own_code: Which source files are the user's own: the view `Frontier` of SQL follows it.
        whole: Of a slice the profile that it is a range of, else the profile itself.
    """

    def __init__(
        self,
        path: Path,
        metadata: Mapping[str, Any],
        catalog: Catalog,
        memory_limit: str,
        timeout_s: float,
        *,
        remote: RemoteFolder | None = None,
        range_ns: tuple[int, int] | None = None,
        own_code: OwnCode | None = None,
        whole: Profile | None = None,
    ) -> None:
        self.path = path
        self.whole = self if whole is None else whole
        self.own_code = own_code_of(os.environ) if own_code is None else own_code
        self.metadata = metadata
        self.complete = bool(metadata.get("complete", True))
        self.missing = catalog.missing
        self._catalog = catalog
        self._timeout_s = timeout_s
        self._memory_limit = memory_limit
        self._remote = remote
        self._range_ns = range_ns
        self._stamp = _stamp(path)
        self._lock = Lock()
        self._timeline: Timeline | None = None
        self._database: duckdb.DuckDBPyConnection | None = None
        self._views: NamedViews | None = None
        self._kept = KeptResults()

    def __enter__(self) -> Profile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the profile's files; those of a slice are its whole profile's."""
        if self.whole is not self:
            return
        if self._views is not None:
            self._views.close()
        if self._database is not None:
            self._database.close()
        close_idle(str(self.path))
        if self._remote is not None:
            self._remote.close()

    def tables(self) -> dict[str, int]:
        """Rows of each table that has any, in the schema's order; of a slice, those of the whole profile."""
        return {name: stored.rows for name, stored in self._catalog.tables.items() if stored.rows}

    def table(self, name: str) -> duckdb.DuckDBPyRelation:
        """A table as a lazy relation; empty if the profile does not have it.

        Raises:
            UnknownTableError: The schema has no such table.
        """
        query = f"SELECT * FROM {quoted(table_schema(name).name)}"
        return self._cursor(query).sql(query)

    def arrow(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A table, or some of its columns, as an Arrow table in memory.

        Raises:
            UnknownTableError: The schema has no such table.
            QueryError: A column does not exist, or the memory limit is passed.
        """
        chosen = "*" if columns is None else ", ".join(quoted(column) for column in columns)
        return self.query(f"SELECT {chosen} FROM {quoted(table_schema(name).name)}")

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """A lazy relation over the tables, for `.df()`, `.pl()`, `.to_arrow_table()`, `.fetchall()`.

        Runs when its rows are taken, without the time limit of `query`; it is otherwise as restricted.

        Raises:
            QueryError: It is not a single reading statement, or names what does not exist.
        """
        sandbox.check_query(query)
        cursor = self._cursor(query)
        with sandbox.bounded(cursor, self._timeout_s):
            relation = cursor.sql(query)
        return relation

    def query(
        self,
        query: str,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        *,
        timeout_s: float | None = None,
    ) -> pa.Table:
        """The result of a query, computed now, within the memory limit and a time limit.

        Args:
            parameters: Values of `?` in the query, or of `$name` by name.
            timeout_s: Time limit. The query then runs in a process of its own, which can read the profile
                only, and is ended when the time is over or the memory limit is passed, whatever it does: for
                queries of others. None: it runs here, within the profile's own limit, which is looked at
                between the database's steps.

        Raises:
            QueryError: It is not a single reading statement, is wrong, or took too much.
        """
        given = dict(parameters) if isinstance(parameters, Mapping) else list(parameters)
        if timeout_s is not None:
            return self._foreign(Query(query, given, timeout_s))
        sandbox.check_query(query)
        with self._lent_cursor(query) as cursor, sandbox.bounded(cursor, self._timeout_s):
            return cursor.sql(query, params=given or None).to_arrow_table()

    def first_rows(
        self, query: str, most: int, timeout_s: float, *, interrupting: Interrupting | None = None
    ) -> pa.Table:
        """The first rows of somebody else's query, at most so many, as `query` with `timeout_s` runs it.

        Args:
            interrupting: Given what stops the query; entered while it runs.

        Raises:
            QueryError: As `query`.
        """
        return self._foreign(Query(query, [], timeout_s, most, interrupting or no_interrupt))

    def _foreign(self, query: Query) -> pa.Table:
        if remote_folder(self.path) is not None:  # a process without a network could not read it
            return self._foreign_here(query)
        target = QueryTarget(str(self.path), self._range_ns, self._memory_limit, self._stamp)
        return run_query(target, query)

    def _foreign_here(self, query: Query) -> pa.Table:
        sandbox.check_query(query.text)
        with (
            self._cursor(query.text) as cursor,
            query.interrupting(cursor.interrupt),
            sandbox.bounded(cursor, query.timeout_s),
        ):
            relation = cursor.sql(query.text, params=query.parameters or None)
            return (relation if query.most_rows is None else relation.limit(query.most_rows)).to_arrow_table()

    def summary(self) -> dict[str, Any]:
        """The Summary metrics that are known; every `*_percent` is a fraction from 0 to 1."""
        return dict(self.whole.kept("summary", self._summary))

    def _summary(self) -> dict[str, Any]:
        rows = self.query('SELECT * FROM "Summary" LIMIT 1').to_pylist()
        return {name: value for name, value in rows[0].items() if value is not None} if rows else {}

    def tracks(self) -> tuple[Track, ...]:
        """All tracks of the timeline, in the order in which to draw them.

        The first call maps the index that stands beside the tables, or builds it where there is none or it
        belongs to other tables.
        """
        return self.timeline_index.tracks

    def time_range_ns(self) -> tuple[int, int]:
        """Start of the first and end of the last span or sample, in ns; (0, 0) in an empty profile."""
        return self._range_ns or self.timeline_index.range_ns()

    def timeline(
        self,
        track: Track | str,
        start_ns: int | None = None,
        end_ns: int | None = None,
        pixels: int = DEFAULT_PIXELS,
    ) -> pa.RecordBatch:
        """What to draw of one track, pixel by pixel, at a cost that depends on the pixels, not on the spans.

        Pixel i covers the i-th of `pixels` equal parts of the range. Pixels in which nothing is are left
        out. The schema's metadata repeats `start_ns`, `end_ns` and `pixels`.

        Args:
            track: A track of `tracks()`, or its id.
            start_ns, end_ns: The range, half open; None for the profile's own.

        Returns:
            Of a track of spans, by depth then pixel: `depth` int32; `pixel` int32; `count` int64, spans that
            begin in the pixel; `busy_share` float32, 0 to 1; and the span that shows, which is one that
            covers at least half of the pixel or else the longest that begins in it: `span_row` int64 (see
            `row`), `span_start_ns` int64, `span_duration_ns` int64, `span_name` dictionary of strings.
            Neighbouring pixels of one depth that show the same `span_row` show one span.

            Of a counter, by pixel: `pixel` int32; `count` int64, samples; `least`, `greatest`, `mean`
            float64. A value holds until the next sample, so a pixel that is left out has the last one's.

        Raises:
            TimelineError: There is no such track, the range is empty, or no pixel is asked for.
        """
        return self.timeline_index.one(track, *self._within(start_ns, end_ns), pixels)

    def timelines(
        self,
        tracks: Sequence[Track | str] | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
        pixels: int = DEFAULT_PIXELS,
        *,
        depths: int | None = None,
        relative: bool = False,
    ) -> pa.RecordBatch:
        """`timeline` of several tracks in one batch. May be called by several threads at once.

        Args:
            tracks: Tracks of spans, or counters, not both; None for all tracks of spans.
            depths: Draw so many depths of each track (`Track.depths` says how many it has) and fold what
                stands deeper into one more, of depth `depths`: its `count` is the sum, its `busy_share` that
                of the busiest depth (of spans that enclose each other, that of all), its span the longest.
                0 folds each track into one row; None draws all depths.
            relative: Give `span_start_ns` as float32 from the start of the range, and `span_duration_ns` as
                float32: what drawing needs, without 64-bit integers. The batch's metadata has the start.

        Returns:
            The columns of `timeline` behind `track` int32, the track's place in `tracks()`.

        Raises:
            TimelineError: As `timeline`.
        """
        range_ns = self._within(start_ns, end_ns)
        return self.timeline_index.many(tracks, *range_ns, pixels, depths=depths, relative=relative)

    def spans(
        self,
        track: Track | str,
        start_ns: int | None = None,
        end_ns: int | None = None,
        limit: int = DEFAULT_SPANS,
    ) -> pa.RecordBatch:
        """The spans of a track that overlap a range, exactly.

        Args:
            limit: At most so many; of more, the first ones.

        Returns:
            By start, then depth: `depth` int32, `start_ns` int64, `duration_ns` int64, `name` dictionary of
            strings, `row` int64 (see `row`).

        Raises:
            TimelineError: As `timeline`.
        """
        return self.timeline_index.spans(track, *self._within(start_ns, end_ns), limit)

    def search(
        self, text: str, start_ns: int | None = None, end_ns: int | None = None, limit: int = DEFAULT_FOUND
    ) -> pa.Table:
        """Find spans by name or by a column's value.

        Args:
            text: Part of a name, whatever the case; or `column=value` with a column of any table of spans,
                such as `layer=/model/layers/0/mlp`, `source_line=41` or `correlation_id=77`; or
                `lines=FILE:FIRST-LAST`, the spans of those source lines and of what they call.
            limit: At most so many; of more, the first ones.

        Returns:
            By start: `track` int32, the place in `tracks()`; `depth` int32, -1 where it is not known;
            `start_ns` int64; `duration_ns` int64; `name` string; `row` int64 (see `row`).

        Raises:
            TimelineError: The range is empty.
        """
        return self.timeline_index.search(text, *self._within(start_ns, end_ns), limit, self._stacks_through)

    def _stacks_through(self, file: str, first: int, last: int) -> frozenset[str]:
        """Innermost frames of the stacks that lines of a file are on."""
        return frozenset(self.query(STACKS_THROUGH, [file, first, last]).column(0).to_pylist())

    @property
    def range_ns(self) -> tuple[int, int] | None:
        """The range of time that a slice shows; None of a whole profile."""
        return self._range_ns

    def slice(self, start_ns: int, end_ns: int) -> Profile:
        """The same profile seen through a range of time; it reads as long as the profile is open.

        Its tables, queries and timeline hold what lies in the range, at least in part, with the times that it
        has in the whole profile. Tables without times (Summary, Metadata, the source tables) are whole.

        Raises:
            TimelineError: The range is empty.
        """
        if end_ns <= start_ns:
            raise TimelineError(
                f"The range from {start_ns} to {end_ns} ns is empty: its end must follow its start."
            )
        return Profile(
            self.path, self.metadata, self._catalog, self._memory_limit, self._timeout_s,
            range_ns=(start_ns, end_ns), own_code=self.own_code, whole=self.whole,
        )  # fmt: skip

    def seen_by(self, own_code: OwnCode) -> Profile:
        """The same profile for a reader whose own code is another; close it on its own."""
        return Profile(
            self.path, self.metadata, self._catalog, self._memory_limit, self._timeout_s,
            range_ns=self._range_ns, own_code=own_code,
            whole=None if self.whole is self else self.whole.seen_by(own_code),
        )  # fmt: skip

    def source_files(self) -> list[str]:
        """Files that the profile's source table lists, in alphabetical order."""
        found = self.query("SELECT DISTINCT path FROM SourceFile ORDER BY path")
        return [str(path) for path in found.column(0).to_pylist()]

    def source_lines(self, file: str) -> pa.Table:
        """What the lines of a source file cost.

        Args:
            file: As `source_files`, `Instruction.source_file` and the stack frames spell it.

        Returns:
            One row for each line with work, ascending: `line` int, counted from 1; `text` string, null where
            the profile does not keep it; `instruction_count`, `instruction_time_ns`, `wait_time_ns`,
            `dma_transfer_count`, `dma_time_ns`, `host_span_count`, `host_time_ns` int64, sums over the rows
            that name the line (engines and threads that work at once add up; enclosing spans too).

        Raises:
            QueryError: It took too much time or memory.
        """
        return self.query(source_lines.QUERY, {"file": file})

    def _within(self, start_ns: int | None, end_ns: int | None) -> tuple[int | None, int | None]:
        """The range asked for, cut to that of a slice."""
        if self._range_ns is None:
            return start_ns, end_ns
        low, high = self._range_ns
        return max(low, low if start_ns is None else start_ns), min(high, high if end_ns is None else end_ns)

    def row(self, table: str, row: int) -> dict[str, Any]:
        """Every column of one row of a table, for example of the span that a pixel shows.

        Args:
            table: `Track.table`.
            row: Number of the row in stored order, as `timeline` and `spans` give it.

        Raises:
            UnknownTableError: The schema has no such table.
            IndexError: The table has no such row.
        """
        return stored_row(table_schema(table), self._catalog.tables.get(table), row)

    def stands_in_order(self, table: str) -> bool:
        """Whether `stored_batches` gives the rows of each track of a table of spans in order of start."""
        return self._range_ns is None and self.timeline_index.is_in_order(table)

    def stored_batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a table as they are stored, in batches; each is read while the one before it is used.

        Args:
            columns: Columns to read. Those that a part lacks are missing in its batches; texts come as
                dictionaries.
        """
        fields = table_schema(table).by_name
        stored = self._catalog.tables.get(table)
        texts = [name for name in columns if name in fields and fields[name].type == "string"]
        yield from (batch for _, batch in batches(stored.paths if stored else (), columns, texts))

    def kept(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """What `make` returned when it was first called for a key; kept as long as the profile is.

        For results that several analyses need: those that ask meanwhile wait for the one that computes.

        Args:
            key: Names the result, and all that it depends on besides the profile and its range.
        """
        return self._kept.get(key, make)

    def known(self, key: Hashable) -> Any:
        """What `kept` keeps for a key; None where nothing was computed yet."""
        return self._kept.known(key)

    def _cursor(self, query: str) -> duckdb.DuckDBPyConnection:
        """A cursor of its own that knows the tables which a query names.

        Raises:
            DamagedProfileError: A table's data cannot be read.
        """
        return self._views_for(query).cursor(self._range_ns)

    def _lent_cursor(self, query: str) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """As `_cursor`, for a query whose rows are taken at once."""
        return self._views_for(query).lent(self._range_ns)

    def _views_for(self, query: str) -> NamedViews:
        import duckdb

        views = self._named_views()
        with reading(self.path, duckdb.Error):
            views.make(query, of_range=self._range_ns is not None)
        return views

    def _named_views(self) -> NamedViews:
        """The views of the profile and its ranges; made with the first query, for a timeline needs none."""
        if self.whole is not self:
            return self.whole._named_views()
        with self._lock:
            if self._views is None:
                self._views = self._connect()
            return self._views

    def _connect(self) -> NamedViews:
        import duckdb

        self._database = duckdb.connect(":memory:")
        views = NamedViews(self._database, self._catalog, own_code=self.own_code)
        is_remote = remote_folder(self.path) is not None
        sandbox.lock_down(
            self._database, f"{layout.PROTOCOL}://" if is_remote else str(self.path), self._memory_limit
        )
        return views

    @property
    def timeline_index(self) -> Timeline:
        """The index behind `tracks`, `timeline` and `spans`; opened or built when it is first needed."""
        with self._lock:
            if self._timeline is None:
                parts = {name: stored.paths for name, stored in self._catalog.tables.items()}
                self._timeline = Timeline(self.path, parts)
            return self._timeline


def open_profile(
    path: str | Path,
    *,
    memory_limit: str = sandbox.DEFAULT_MEMORY_LIMIT,
    timeout_s: float = sandbox.DEFAULT_TIMEOUT_S,
) -> Profile:
    """Open a profile.

    Args:
        path: `NAME.nprof`, its `profile.json`, or a folder of Parquet files with the published table names;
            or the URL of one, `s3://bucket/NAME.nprof`, of which no more is fetched than is looked at.
        memory_limit: Of queries, as DuckDB spells it.
        timeout_s: Of `Profile.query`.

    Raises:
        NotAProfileError: It is not there, no profile, damaged beyond use, or of a newer format.

    Example:
        >>> profile = open_profile("run.nprof")
        >>> profile.sql("SELECT engine, sum(duration_ns) FROM Instruction GROUP BY engine").df()
    """
    remote = RemoteFolder(str(path)) if is_url(path) else None
    try:
        directory = _directory(Path(path) if remote is None else remote.directory)
        metadata, catalog = _contents(directory)
    except BaseException:
        if remote is not None:
            remote.close()
        raise
    return Profile(directory, metadata, catalog, memory_limit, timeout_s, remote=remote)


def _stamp(directory: Path) -> tuple[int, int]:
    """Time and size of the manifest; another when the profile has changed."""
    try:
        status = (directory / layout.MANIFEST_NAME).stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def _contents(directory: Path) -> tuple[Mapping[str, Any], Catalog]:
    """What `profile.json` says, and the tables; a folder of Parquet tables may do without the former."""
    has_manifest = (directory / layout.MANIFEST_NAME).exists()
    catalog = Catalog(directory) if has_manifest else read_catalog(directory)
    if not has_manifest and catalog.tables:
        return {}, catalog
    if catalog.missing:
        raise NotAProfileError(f"{directory} has no table that can be read. {catalog.missing[0]}")
    metadata = layout.read_manifest(directory)
    return metadata, open_catalog(directory)


def _directory(path: Path) -> Path:
    if not path.exists():
        raise NotAProfileError(f"{path} does not exist: name the NAME.nprof folder of a capture.")
    if path.name == layout.MANIFEST_NAME and path.is_file():
        path = path.parent
    if not path.is_dir():
        raise NotAProfileError(
            f"{path} is a file, not a profile: name a NAME.nprof folder, or import a trace of another tool "
            "with `neuron-profile import`."
        )
    return _in_utf_8(path.resolve())


def _in_utf_8(path: Path) -> Path:
    """A path that the database can be told.

    Raises:
        NotAProfileError: It is none.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = str(path).encode(errors="backslashreplace").decode()
        raise NotAProfileError(
            f"{shown} is not UTF-8: rename the profile, or the folder that it is in."
        ) from None
    return path
