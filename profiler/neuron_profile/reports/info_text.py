"""What a profile is, as a table for a person or JSON for a program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from neuron_profile.analysis.identity import Identity, ProcessIdentity
from neuron_profile.reports.tables import data_table


def as_json(identity: Identity, tables: Mapping[str, int]) -> str:
    """The facts and the row counts as one JSON object."""
    return json.dumps({**asdict(identity), "path": str(identity.path), "tables": dict(tables)}, indent=2)


def print_info(console: Console, identity: Identity, tables: Mapping[str, int]) -> None:
    """Print facts, processes and tables."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in _facts(identity):
        facts.add_row(name, Text(value))
    console.print(facts)
    console.print()
    console.print(
        data_table(("Table", "Rows"), [(name, f"{rows:,}") for name, rows in tables.items()], right=(1,))
    )


def _facts(identity: Identity) -> Iterator[tuple[str, str]]:
    yield "Profile", str(identity.path)
    for name, value in (
        ("Command", identity.command),
        ("Target", _target(identity)),
        ("Host clock", identity.host_clock),
        ("Settings", ", ".join(identity.settings)),
        ("Imported from", ", ".join(identity.formats)),
        ("Written by", identity.producer),
        ("Format", identity.format_version),
        ("Schema", identity.schema_version),
    ):
        if value:
            yield name, value
    yield "Complete", _completeness(identity)
    if identity.exit_status is not None:
        yield "Exit status", str(identity.exit_status)
    for sentence in identity.missing:
        yield "Missing", sentence
    for process in identity.processes:
        yield f"Process {process.process_idx}", _process(process)


def _target(identity: Identity) -> str:
    if not identity.target:
        return ""
    return f"{identity.target}, LNC {identity.lnc}" if identity.lnc else identity.target


def _completeness(identity: Identity) -> str:
    if identity.interrupted:
        return "the command was interrupted" + ("" if identity.complete else "; the recording has no end")
    return "yes" if identity.complete else "no: the recording did not reach its end"


def _process(process: ProcessIdentity) -> str:
    number = f" (process {process.process_id})" if process.process_id else ""
    return f"{process.command or 'unknown command'}{number}"
