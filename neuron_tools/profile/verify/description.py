"""Rules about how a profile describes itself: whole parts, and SchemaFields that match the tables."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.store.recorded import RecordedTables
from neuron_tools.profile.verify.breach import Breach


def check_parts(recorded: RecordedTables) -> Iterator[Breach]:
    """Every part of every table is whole."""
    for sentence in recorded.missing:
        table = sentence.split(":")[0]
        yield Breach(table, "", "every part is whole", "a whole part", sentence)


def check_schema_fields(recorded: RecordedTables) -> Iterator[Breach]:
    """SchemaFields lists each column of each table that has rows, and nothing else of those tables."""
    if not recorded.row_count("SchemaFields"):
        return
    described: dict[str, dict[str, str]] = {}
    for row in recorded.rows("SELECT table_name, field_name, field_type FROM SchemaFields"):
        described.setdefault(row["table_name"], {})[row["field_name"]] = row["field_type"]
    for name in recorded.table_names():
        types = {field.name: field.type for field in TABLES[name].fields}
        found = described.get(name, {})
        for column in sorted(recorded.columns(name) | found.keys()):
            if column not in found:
                yield Breach("SchemaFields", f"{name}.{column}", "describes every column", "a row", "none")
            elif column not in recorded.columns(name):
                yield Breach(
                    "SchemaFields", f"{name}.{column}", "describes columns that exist", "no row", "one"
                )
            elif column in types and types[column] != found[column]:
                what = "gives the column's type"
                yield Breach("SchemaFields", f"{name}.{column}", what, types[column], found[column])
