import errno
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from neuron_tools.profile.derive import island_store
from neuron_tools.profile.derive.intervals import NO_ISLANDS, at_most, merged, union_by_group
from neuron_tools.profile.derive.island_store import IntervalUnion, IslandStore, IslandStream
from neuron_tools.profile.store.recorded import NoSpaceError
from tests.unit.profile.builders import instruction, write_profile
from tests.unit.profile.derive.test_intervals import SPANS, arrays, naive_union, pairs, plain

FOLDER = Path(tempfile.gettempdir())


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    """Blocks and files of a few islands, so that short tests need several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(island_store, "BLOCK_ISLANDS", 4)
        patch.setattr(island_store, "BYTES_IN_MEMORY", 64)
        yield


def whole(stream):
    return merged(list(stream))


def filled(store, rows, size):
    stream = IntervalUnion(store)
    for first in range(0, len(rows), size):
        stream.add(*arrays(rows[first : first + size]))
    return stream


@given(SPANS, st.integers(1, 7), st.booleans())
def test_batches_in_any_cut_give_the_same_union(rows, size, in_order):
    rows = sorted(rows, key=lambda row: row[1]) if in_order else rows
    with closing(IslandStore(FOLDER)) as store:
        found = filled(store, rows, size).by_group()
        for _ in range(2):  # as often as one likes
            assert plain({group: whole(islands) for group, islands in found.items()}) == naive_union(rows)


@given(st.lists(SPANS, max_size=4), st.integers(1, 7))
def test_streams_join_to_the_union_of_all_and_their_blocks_are_apart(parts, size):
    with closing(IslandStore(FOLDER)) as store:
        unions = [filled(store, rows, size) for rows in parts]
        streams = [islands for union in unions for islands in union.by_group().values()]
        joined = IslandStream.joined(streams)
        expected = naive_union([(0, *row[1:]) for rows in parts for row in rows]).get(0, [])
        assert [pair for block in joined for pair in pairs(block)] == expected
        assert joined.total == sum(end - start for start, end in expected)


@given(SPANS, st.integers(1, 7), st.integers(1, 6))
def test_the_shortest_gaps_are_closed_as_if_all_were_in_memory(rows, size, limit):
    with closing(IslandStore(FOLDER)) as store:
        found = filled(store, rows, size)
        for group, islands in union_by_group(*arrays(rows)).items():
            assert pairs(found.of(group).at_most(limit)) == pairs(at_most(islands, limit))


def test_spans_in_order_are_read_a_block_at_a_time():
    rows = [(0, 10 * place, 5) for place in range(1000)]
    with closing(IslandStore(FOLDER)) as store:
        blocks = [len(block) for block in filled(store, rows, 3).of(0)]
    assert sum(blocks) == 1000
    assert max(blocks) <= 6


def test_times_beyond_32_bits_are_exact():
    far = 1 << 60
    with closing(IslandStore(FOLDER)) as store:
        stream = filled(store, [(0, 3, 2), (0, far, 1 << 40)], 2).of(0)
        assert pairs(whole(stream)) == [(3, 5), (far, far + (1 << 40))]


def test_a_group_that_never_came_has_no_islands():
    with closing(IslandStore(FOLDER)) as store:
        stream = IntervalUnion(store).of(3)
        assert (list(stream), stream.total, len(stream.at_most(2))) == ([], 0, 0)
    assert list(IslandStream.of(NO_ISLANDS)) == []


def test_a_full_disk_is_one_sentence_that_says_what_to_do(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with closing(IslandStore(FOLDER)) as store:
        monkeypatch.setattr(store._file, "write", full, raising=False)
        with pytest.raises(NoSpaceError, match=r"No space left on device\): free space there\."):
            IntervalUnion(store).add(*(np.array([value]) for value in (0, 1, 2)))


def test_tables_are_derived_beside_the_profile_and_leave_nothing_behind(tmp_path, monkeypatch):
    """The folder of temporary files may be memory, and may be full."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    monkeypatch.setattr(island_store, "BYTES_IN_MEMORY", 1)
    rows = [instruction("Tensor", 10 * place, 10 * place + 5) for place in range(9)]
    directory = write_profile(tmp_path / "p", {"Instruction": rows})
    assert (directory / "ActiveTime").is_dir()
    assert list(directory.glob(".*")) == []
