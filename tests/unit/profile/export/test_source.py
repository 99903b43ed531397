import pytest

from neuron_tools.profile.export import source
from neuron_tools.profile.export.report import ExportError
from neuron_tools.profile.export.source import Tables, ahead
from tests.fixtures.synthetic_profile import MemoryProfile, instructions


@pytest.fixture
def tables():
    start = [5, 1, 9, 3, 7, 5, 5, 2]
    return Tables(MemoryProfile({"Instruction": instructions(start, [at + 1 for at in start])}))


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_windows_hold_every_row_once_in_order_of_time(rows, tables, monkeypatch):
    monkeypatch.setattr(source, "WINDOW_ROWS", rows)

    windows = tables.windows("Instruction", "t.start_ts")

    parts = [
        [row[0] for row in tables.rows(f"SELECT start_ts FROM Instruction t WHERE {window} ORDER BY 1")]
        for window in windows
    ]
    assert [start for part in parts for start in part] == [1, 2, 3, 5, 5, 5, 7, 9]


def test_a_table_that_is_not_there_has_no_rows_and_no_columns(tables):
    assert (tables.count("CcOp"), tables.columns("CcOp"), "CcOp" in tables) == (0, {}, False)


def test_a_column_that_is_not_there_gets_its_default(tables):
    assert tables.column_or("Instruction", "start_ts", "0") == 'coalesce(t."start_ts", 0)'
    assert tables.column_or("Instruction", "nothing", "0") == "0"


def test_rows_that_cannot_be_read_are_one_sentence(tables):
    with pytest.raises(ExportError, match="cannot be read"):
        list(tables.batches("SELECT CAST(opcode AS INTEGER) FROM Instruction"))


def test_reading_ahead_changes_nothing(tables):
    query = "SELECT start_ts FROM Instruction ORDER BY 1"

    assert list(ahead(tables.batches(query, 3))) == list(tables.batches(query, 3))


def test_reading_ahead_passes_errors_on(tables):
    with pytest.raises(ExportError, match="cannot be read"):
        list(ahead(tables.batches("SELECT CAST(opcode AS INTEGER) FROM Instruction")))
