"""Slices, search and source lines of an opened profile, and profiles behind URLs."""

import duckdb
import pytest

from neuron_tools import open_profile
from neuron_tools.profile.reader import QueryError, TimelineError
from neuron_tools.profile.store.catalog import MOST_FREE_CURSORS
from neuron_tools.profile.store.layout import NotAProfileError
from tests.unit.profile.builders import sound_tables, write_profile


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    tables = sound_tables()
    for row, line in zip(tables["Instruction"], (7, 9, 9), strict=True):
        row.update(source_file="train.py", source_line=line, evt_wait_time_ns=2)
    tables["DmaPacketAggregated"][0].update(source_file="train.py", source_line=7)
    tables["SourceFile"] = [{"path": "train.py", "text": "\n".join(f"line {n}" for n in range(1, 12))}]
    return write_profile(tmp_path_factory.mktemp("views") / "p.nprof", tables)


def test_a_slice_holds_what_lies_in_its_range(directory):
    with open_profile(directory) as profile, profile.slice(102, 130) as part:
        assert part.query("SELECT id FROM Instruction").column(0).to_pylist() == [3]
        assert part.query("SELECT count(*) FROM HloInstruction").column(0).to_pylist() == [1]
        assert part.query("SELECT count(*) FROM Metadata").column(0).to_pylist() == [1]
        assert part.time_range_ns() == (102, 130)
        assert part.timeline("p0/core0/engine/Tensor").num_rows == 0
        assert part.spans("p0/core0/engine/Scalar").num_rows == 1
        with pytest.raises(TimelineError, match="is empty"):
            profile.slice(5, 5)


def test_a_query_of_a_slice_may_name_no_table(directory):
    with open_profile(directory) as profile, profile.slice(102, 130) as part:
        assert part.query("SELECT 41 + 1").column(0).to_pylist() == [42]


def test_slices_read_beside_each_other_and_name_tables_as_sql_does(directory):
    with open_profile(directory) as profile:
        parts = [profile.slice(0, 60), profile.slice(102, 130)]
        counts = [part.query("SELECT count(*) FROM instruction").column(0).to_pylist()[0] for part in parts]
        listed = parts[0].query("SELECT table_name FROM information_schema.tables").column(0).to_pylist()
        whole = profile.query('SELECT count(*) FROM "INSTRUCTION"').column(0).to_pylist()[0]
    assert counts == [1, 1]
    assert whole == 3
    assert {"Instruction", "Frontier", "Warning"} <= set(listed)


def test_cursors_are_used_again_by_their_own_range_alone(directory):
    with open_profile(directory) as profile:
        starts = [0, 60, 102] * 5
        ids = [
            profile.slice(start, 200 + round_).query("SELECT id FROM Instruction").column(0).to_pylist()
            for round_ in range(2)
            for start in starts
        ]
        whole = profile.query("SELECT count(*) FROM Instruction").column(0).to_pylist()
        assert len(profile._named_views()._free) <= MOST_FREE_CURSORS
    every, middle, last = ids[:3]
    assert ids == [every, middle, last] * 10
    assert (len(every), last, whole) == (3, [3], [3])


def test_a_cursor_whose_query_failed_is_not_used_again_and_none_outlives_the_profile(directory):
    with open_profile(directory) as profile:
        views = profile._named_views()
        with pytest.raises(QueryError, match="nonsense"):
            profile.query("SELECT nonsense FROM Instruction")
        assert not views._free
        assert profile.query("SELECT 1").num_rows == 1
        kept = views._free[0][1]
        lent = views.lent((102, 130))
        late = lent.__enter__()
    lent.__exit__(None, None, None)
    for cursor in (kept, late):
        with pytest.raises(duckdb.ConnectionException):
            cursor.execute("SELECT 1")


def test_search_finds_names_whatever_their_case(directory):
    with open_profile(directory) as profile:
        found = profile.search("matm").to_pylist()
        tracks = profile.tracks()
        nothing = profile.search("no such thing")
    assert [(row["name"], tracks[row["track"]].name, row["start_ns"]) for row in found] == [
        ("MATMUL", "Tensor", 60)
    ]
    assert nothing.num_rows == 0


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("source_line=9", [60, 105]),
        ("layer = /model/fc", [0, 10, 60, 105]),
        ("source_line=x", []),
        ("lines=train.py:9", [60, 105]),
        ("lines = train.py:1-8", [0, 0, 10, 60, 105]),  # what they call too
        ("lines=other.py:1-99", []),
        ("lines=train.py:10-20", []),
    ],
)
def test_search_finds_values_of_columns(directory, text, starts):
    with open_profile(directory) as profile:
        found = profile.search(text)
        for row in found.to_pylist():
            stored = profile.row(profile.tracks()[row["track"]].table, row["row"])
            assert stored["start_ts"] == row["start_ns"]
        few = profile.search(text, limit=1)
    assert found.column("start_ns").to_pylist() == starts
    assert few.column("start_ns").to_pylist() == starts[:1]


def test_search_keeps_to_its_range(directory):
    with open_profile(directory) as profile:
        assert profile.search("layer=/model/fc", 101, 200).column("start_ns").to_pylist() == [105]
        assert profile.search("matmul", 200, 300).num_rows == 0


def test_source_lines_sum_what_names_them(directory):
    with open_profile(directory) as profile:
        assert profile.source_files() == ["train.py"]
        lines = profile.source_lines("train.py").to_pylist()
        unknown = profile.source_lines("other.py")
    assert [(line["line"], line["text"]) for line in lines] == [(7, "line 7"), (9, "line 9")]
    assert (lines[0]["instruction_count"], lines[0]["dma_time_ns"]) == (1, 50)
    assert (lines[1]["instruction_time_ns"], lines[1]["wait_time_ns"]) == (65, 4)
    assert unknown.num_rows == 0


def test_a_profile_behind_a_url_opens_like_any_other(directory):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.put(str(directory), "/bucket/run.nprof", recursive=True)
    with open_profile("memory://bucket/run.nprof") as profile:
        copied = profile.path
        assert profile.metadata["target"] == "trn2"
        assert profile.query("SELECT count(*) FROM Instruction").column(0).to_pylist() == [3]
        assert profile.timelines().num_rows > 0
    assert not copied.exists()


@pytest.mark.parametrize("url", ["memory://bucket/nothing.nprof", "nosuch://bucket/run.nprof"])
def test_a_url_that_leads_nowhere_is_one_sentence(url):
    pytest.importorskip("fsspec")
    with pytest.raises(NotAProfileError, match=r"cannot be|does not exist"):
        open_profile(url)
