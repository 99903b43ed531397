import csv
import io
from math import isnan, nan

import pytest
from hypothesis import given, settings, strategies as st

from neuron_monitor.dashboard.history import History
from neuron_monitor.dashboard.recording import ROWS_A_FILE, Recording


@settings(deadline=None)
@given(rows=st.integers(0, 50), capacity=st.integers(1, 20))
def test_only_the_newest_rows_are_kept(rows, capacity):
    history = History(["a"], capacity)
    for number in range(rows):
        history.append(number * 1000, [number])
    assert [row.values[0] for row in history.since(0)] == list(range(max(0, rows - capacity), rows))


@settings(deadline=None)
@given(since=st.integers(0, 40))
def test_rows_since_a_number(since):
    history = History(["a"], 10)
    for number in range(30):
        history.append(number, [number])
    assert [row.number for row in history.since(since)] == list(range(max(since, 20), 30))


def test_rows_of_a_stretch_of_time():
    history = History(["a"], 10)
    for number in range(5):
        history.append(number * 1000, [number])
    assert [row.number for row in history.between(1000, 3000)] == [1, 2, 3]


def test_what_is_no_number_is_none_in_a_column_and_empty_in_csv():
    history = History(["a", "b"], 10)
    history.append(5, [nan, 0.25])
    rows = history.since(0)
    assert (history.column(rows, "a"), history.column(rows, "b")) == ([None], [0.25])
    assert list(csv.reader(io.StringIO(history.as_csv(rows)))) == [["time_ms", "a", "b"], ["5", "", "0.25"]]


@pytest.fixture
def history():
    return History(["a", "b"], 1000)


def test_a_recording_can_be_read_as_parquet(tmp_path, history):
    parquet = pytest.importorskip("pyarrow.parquet")
    recording = Recording(str(tmp_path / "r"), history.columns, 1 << 30)
    for number in range(ROWS_A_FILE + 5):
        recording.append(history.append(number, [number, nan]))
    recording.flush()
    table = parquet.read_table(tmp_path / "r").to_pydict()
    assert sorted(table["time_ms"]) == list(range(ROWS_A_FILE + 5))
    assert all(isnan(value) for value in table["b"])


def test_the_oldest_files_are_deleted_beyond_the_limit(tmp_path, history):
    recording = Recording(str(tmp_path), history.columns, 1)
    for number in range(3 * ROWS_A_FILE):
        recording.append(history.append(number, [number, 0]))
    assert len(list(tmp_path.glob("*.parquet"))) == 1


def test_a_full_disk_is_told_and_survived(tmp_path, history, monkeypatch):
    recording = Recording(str(tmp_path), history.columns, 1 << 30)

    def refuse(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recording._parquet, "write_table", refuse)
    recording.append(history.append(0, [0, 0]))
    recording.flush()
    assert "no space left" in recording.error
    monkeypatch.undo()
    recording.append(history.append(1, [1, 1]))
    recording.flush()
    assert recording.error == ""
    assert len(list(tmp_path.glob("*.parquet"))) == 1
