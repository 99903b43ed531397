"""Rules about single values: required, finite, in range, one of their enumeration."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_tools.profile.schema import ENUMS, TABLES, Field, TableSchema
from neuron_tools.profile.store.catalog import quoted, text_literal
from neuron_tools.profile.store.recorded import RecordedTables
from neuron_tools.profile.verify.breach import Breach, breaches

FRACTION_TOLERANCE = 1e-9  # a sum of parts may pass 1 by rounding


def check_values(recorded: RecordedTables) -> Iterator[Breach]:
    """Every column of every table that has rows."""
    for name in recorded.table_names():
        table = TABLES[name]
        suspects = _suspects(recorded, table)
        for field in table.fields:
            if field.name in suspects:
                yield from _of_field(recorded, table, field)


def _suspects(recorded: RecordedTables, table: TableSchema) -> set[str]:
    """Columns in which some row breaks a rule: one pass over the table, most of it from statistics."""
    conditions = {field.name: " OR ".join(rule[0] for rule in _rules(field)) for field in table.fields}
    present = recorded.columns(table.name)
    checked = {
        name: condition
        for name, condition in conditions.items()
        if condition and (name in present or table.by_name[name].required)
    }
    if not checked:
        return set()
    marks = ", ".join(f"bool_or({condition}) AS {quoted(name)}" for name, condition in checked.items())
    return {
        name for name, broken in recorded.row(f"SELECT {marks} FROM {quoted(table.name)}").items() if broken
    }


def _of_field(recorded: RecordedTables, table: TableSchema, field: Field) -> Iterator[Breach]:
    for condition, what, expected in _rules(field):
        yield from breaches(
            recorded,
            table.name,
            condition,
            f"{field.name} {what}",
            text_literal(expected),
            quoted(field.name),
        )


def _rules(field: Field) -> Iterator[tuple[str, str, str]]:
    """The rules of a column: SQL that is true where it is broken, what the rule is, what it expects."""
    column = quoted(field.name)
    if field.required:
        yield f"{column} IS NULL", "is required", "a value"
    if field.type == "float64":
        yield f"(isnan({column}) OR isinf({column}))", "is a finite number", "a finite number"
    if field.unit == "percent" and field.type == "float64":
        # NaN sorts above every number and would show twice.
        outside = f"({column} < {-FRACTION_TOLERANCE} OR {column} > {1 + FRACTION_TOLERANCE})"
        yield f"{outside} AND NOT isnan({column}) AND NOT isinf({column})", "is a fraction", "0 to 1"
    elif field.name.endswith("_offset_ns"):
        return
    elif field.unit in ("nanoseconds", "bytes", "seconds", "cycles") and field.type in ("int64", "float64"):
        yield f"{column} < 0", "is not negative", "0 or more"
    if field.enum:
        values = ", ".join(text_literal(value) for value in ENUMS[field.enum])
        yield f"{column} NOT IN ({values})", "is one of its enumeration", ", ".join(ENUMS[field.enum])
