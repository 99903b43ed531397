"""Files that the browser downloads: rows of grids and queries as CSV, and what exports made."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from flask import Flask, Response, request, send_file

from neuron_explorer.grid_rows import Request, Source, ordered_rows, parts_of_filter, read_request
from neuron_explorer.grid_sources import SOURCES
from neuron_explorer.jobs import Progress, WatchedProfile
from neuron_explorer.operator_times import grouped_rows
from neuron_explorer.page import Site, View
from neuron_explorer.parts.card import file_name
from neuron_explorer.query_results import TIMEOUT_S
from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.store.catalog import quoted

MOST_ROWS = 1_000_000
CHUNK_ROWS = 5_000
FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")


def register(server: Flask, site: Site) -> None:
    """Add the routes of downloads to a server."""

    def rows(source: str) -> Response:
        found = SOURCES.get(source)
        if found is None:
            return _refused("There is no such table.")
        try:
            view = _asked_view(site)
            asked = parts_of_filter(json.loads(request.args.get("grid", "{}")))
            wanted = read_request(found, asked)
            return _csv(f"{file_name(view.profile.path.stem)}-{found.name}", _lines(view, found, wanted))
        except (NeuronToolsError, ValueError) as error:
            return _refused(str(error))
        except RecursionError:
            return _refused("The request is nested too deeply.")

    def query() -> Response:
        try:
            profile = _asked_view(site).part
            watched = WatchedProfile(profile, Progress())
            table = watched.first_rows(request.args.get("sql", ""), MOST_ROWS, TIMEOUT_S)
            return _csv(f"{file_name(profile.path.stem)}-query", csv_lines(table))
        except NeuronToolsError as error:
            return _refused(str(error))

    def export(task_id: str) -> Response:
        task = site.tasks.get(task_id)
        if task is None or task.kind != "export" or task.state != "done":
            return _refused("There is no such export: it was cancelled, failed, or belongs to another run.")
        response: Response = send_file(task.job.result, as_attachment=True)
        return response

    server.add_url_rule("/download/rows/<source>", "download_rows", rows)
    server.add_url_rule("/download/query", "download_query", query)
    server.add_url_rule("/download/export/<task_id>", "download_export", export)


def _asked_view(site: Site) -> View:
    """The profile, or the range of it, that a request names."""
    return site.view(request.path, request.query_string.decode())


def _lines(view: View, source: Source, wanted: Request) -> Iterator[str]:
    if source.is_grouped:
        return csv_lines(ordered_rows(grouped_rows(view, source.name), source, wanted, MOST_ROWS))
    columns = ", ".join(quoted(column.name) for column in source.columns)
    order = ", ".join(f"{quoted(name)} {'DESC' if falling else 'ASC'}" for name, falling in wanted.sort)
    query = f"SELECT {columns} FROM ({source.query_of(view.part)}){wanted.where}"
    query += f" ORDER BY {order}" if order else ""
    table = view.part.query(f"{query} LIMIT {MOST_ROWS}", wanted.parameters)
    return csv_lines(table)


def csv_lines(table: Any) -> Iterator[str]:
    """An Arrow table as the text of a CSV file, some thousand rows at a time."""
    yield _text([table.column_names])
    for batch in table.to_batches(CHUNK_ROWS):
        columns = [column.to_pylist() for column in batch.columns]
        yield _text([list(map(_field, row)) for row in zip(*columns)])


def _field(value: Any) -> Any:
    """A cell; a text that a spreadsheet would run as a formula is marked as text."""
    if isinstance(value, str) and value.startswith(FORMULA_MARKS):
        return f"'{value}"
    return "" if value is None else value


def _text(rows: list[list[Any]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()


def _csv(name: str, lines: Iterator[str]) -> Response:
    response = Response(lines, mimetype="text/csv")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def _refused(message: str) -> Response:
    return Response(f"{message}\n", status=400, mimetype="text/plain")
