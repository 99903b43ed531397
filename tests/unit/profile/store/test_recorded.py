import numpy as np
import pyarrow as pa
import pytest

from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.store import recorded
from neuron_tools.profile.store.layout import part_files
from neuron_tools.profile.store.recorded import (
    DamagedProfileError,
    NoSpaceError,
    RecordedTables,
    TextCodes,
    integers,
)
from neuron_tools.profile.store.sandbox import QueryError
from tests.unit.profile.builders import instruction, write_profile

ROWS = {"Instruction": [instruction("Tensor", n, n + 1, layer="/a" if n % 2 else None) for n in range(7)]}


def test_a_scan_streams_batches_and_fills_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(recorded, "SCAN_ROWS", 3)
    with RecordedTables(write_profile(tmp_path / "p", ROWS, derive=False)) as tables:
        batches = list(tables.scan("Instruction", ("start_ts", "layer", "pc")))
        assert list(tables.scan("CcOp", ("start_ts",))) == []
    assert [len(batch["start_ts"]) for batch in batches] == [3, 3, 1]
    assert np.concatenate([integers(batch["start_ts"]) for batch in batches]).tolist() == list(range(7))
    assert [text for batch in batches for text in batch["layer"].to_pylist()] == [None, "/a"] * 3 + [None]


def test_texts_get_the_same_number_in_every_batch():
    codes = TextCodes()
    first = codes.encode(pa.array(["b", "a", None]).dictionary_encode())
    second = codes.encode(pa.array(["a", "c"]).dictionary_encode())
    assert [codes.texts[number] for number in [*first, *second]] == ["b", "a", "", "a", "c"]


def test_row_counts_are_those_of_whole_tables(tmp_path):
    with RecordedTables(write_profile(tmp_path / "p", ROWS, derive=False)) as tables:
        assert tables.row_count("Instruction") == 7
        assert tables.row_count("Flow") == 0
        assert tables.table_names() == ["Instruction", "Metadata"]


def test_damaged_data_is_one_sentence_for_every_reader(tmp_path):
    directory = write_profile(tmp_path / "p", ROWS, derive=False)
    part = part_files(directory, "Instruction")[0]
    data = part.read_bytes()
    part.write_bytes(data[:4] + b"\xff" * 600 + data[604:])
    query = "SELECT * FROM Instruction"
    with RecordedTables(directory) as tables:
        with pytest.raises(DamagedProfileError, match="cannot be read"):
            tables.arrow(query)
        with pytest.raises(DamagedProfileError, match="cannot be read"):
            list(tables.scan("Instruction", ("start_ts", "end_ts", "engine")))
    with open_profile(directory) as profile, pytest.raises(QueryError):
        profile.query(query)


SORTED = "SELECT count(*) AS n FROM (SELECT hash(i) AS h FROM range(1000000) t(i) ORDER BY h LIMIT 900000)"


def test_a_full_disk_is_no_damage(tmp_path, monkeypatch):
    """The sentence about damage says to remove what cannot be read."""
    monkeypatch.setattr(recorded, "MEMORY_LIMIT", "8MiB")
    directory = write_profile(tmp_path / "p", ROWS, derive=False)
    full = "does not fit into memory cannot be written in .*: free space there"
    with RecordedTables(directory, spill_into=directory) as tables:
        tables._connection.execute("SET max_temp_directory_size = '1MiB'")
        with pytest.raises(NoSpaceError, match=full):
            tables.arrow(SORTED)
    assert list(directory.glob(".*")) == []
    with pytest.raises(NoSpaceError, match=f"{tmp_path}/absent .*No such file"):
        RecordedTables(directory, spill_into=tmp_path / "absent")


def test_a_query_sees_the_tables_that_it_names_and_empty_ones(tmp_path):
    with RecordedTables(write_profile(tmp_path / "p", ROWS, derive=False)) as tables:
        both = 'SELECT count(*) AS n, (SELECT count(*) FROM "CcOp") AS none FROM Instruction'
        assert [tables.row(both) for _ in range(2)] == [{"n": 7, "none": 0}] * 2
        assert tables.row("SELECT count(*) AS n FROM HostSpan") == {"n": 0}
