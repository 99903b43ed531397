"""Parquet files joined by their bytes read as their rows one after another."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from neuron_tools.profile.store.joined_file import JoinedFile, ParquetBytes


def rows_of(count, seed=0):
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "number": random.integers(0, 1 << 40, count),
            "text": pa.array([f"text {n % 7}" for n in range(count)], pa.string()),
            "share": random.random(count),
            "list": pa.array([[n, 2] for n in range(count)], pa.list_(pa.int64())),
            "flag": random.random(count) > 0.5,
            "maybe": pa.array([None if n % 3 else n for n in range(count)], pa.int32()),
            "time": pa.array(range(count), pa.timestamp("us")),
        }
    )


def file_of(rows, **options):
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, store_schema=False, **options)
    return ParquetBytes.of(sink.getvalue())


def joined(path, files):
    file = JoinedFile(path, files[0])
    for further in files[1:]:
        file.append(further)
    file.close()


@settings(max_examples=25, deadline=None)
@given(
    counts=st.lists(st.integers(0, 400), min_size=1, max_size=20),
    group_rows=st.integers(1, 300),
    has_pages=st.booleans(),
    codec=st.sampled_from(["none", "zstd", "lz4"]),
)
def test_rows_follow_each_other(tmp_path_factory, counts, group_rows, has_pages, codec):
    tables = [rows_of(count, place) for place, count in enumerate(counts)]
    options = {"row_group_size": group_rows, "write_page_index": has_pages, "compression": codec}
    path = tmp_path_factory.mktemp("joined") / "a.parquet"
    joined(path, [file_of(table, **options) for table in tables])
    expected = pa.concat_tables(tables)
    assert pq.read_table(path).equals(expected.cast(pq.read_schema(path)))


def test_what_is_told_of_row_groups_moves_with_them(tmp_path):
    path = tmp_path / "a.parquet"
    joined(path, [file_of(rows_of(100, seed)) for seed in range(300)])
    found = pq.read_metadata(path)
    assert (found.num_row_groups, found.num_rows) == (300, 30_000)
    offsets = [found.row_group(group).column(1).data_page_offset for group in range(300)]
    assert offsets == sorted(set(offsets))
    last = pq.ParquetFile(path).read_row_group(299)
    assert last.equals(rows_of(100, 299).cast(last.schema))
    assert found.row_group(299).column(0).statistics.max == max(rows_of(100, 299)["number"].to_pylist())


def test_nothing_stands_there_before_the_file_is_whole(tmp_path):
    file = JoinedFile(tmp_path / "a.parquet", file_of(rows_of(5)))
    assert not (tmp_path / "a.parquet").exists()
    file.close()
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_heads_differ_where_columns_do():
    rows = rows_of(5)
    without = rows.cast(pa.schema([field.with_nullable(False) for field in rows.select([0]).schema] +
                                  list(rows.schema)[1:]))  # fmt: skip
    assert file_of(rows).head == file_of(rows_of(9)).head
    assert file_of(rows).head != file_of(without).head


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    file = JoinedFile(tmp_path / "a.parquet", file_of(rows_of(5)))

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(
        file, "_file", type("Full", (), {"write": staticmethod(full), "close": file._file.close})
    )
    with pytest.raises(OSError, match="No space left"):
        file.append(file_of(rows_of(9)))
    assert not any(tmp_path.iterdir())
