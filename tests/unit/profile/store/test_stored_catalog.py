import json

import pyarrow.parquet as pq
import pytest

from neuron_tools import open_profile
from neuron_tools.profile.store.catalog import read_catalog
from neuron_tools.profile.store.stored_catalog import CATALOG_NAME, open_catalog, parts_signature
from tests.unit.profile.builders import sound_tables, write_profile


@pytest.fixture
def directory(tmp_path):
    return write_profile(tmp_path / "p.nprof", sound_tables())


def test_the_stored_catalog_says_what_the_parts_say(directory):
    assert open_catalog(directory) == read_catalog(directory)


def test_a_finished_profile_opens_without_reading_the_parts(directory, monkeypatch):
    def unexpected(_):
        raise AssertionError("a part was read")

    monkeypatch.setattr(pq, "read_metadata", unexpected)
    with open_profile(directory) as profile:
        assert profile.tables()["Instruction"] == 3


@pytest.mark.parametrize("content", ["", "[]", '{"version": 1}', '{"version": 99}'])
def test_an_unusable_catalog_is_left_aside(directory, content):
    (directory / CATALOG_NAME).write_text(content)
    assert open_catalog(directory) == read_catalog(directory)


def test_a_part_that_was_cut_off_since_is_noticed(directory):
    (part,) = (directory / "Flow").iterdir()
    part.write_bytes(part.read_bytes()[:-20])
    with open_profile(directory) as profile:
        assert "Flow" not in profile.tables()
        assert any("Flow" in sentence for sentence in profile.missing)


def test_a_catalog_that_lacks_a_table_is_left_aside(directory):
    path = directory / CATALOG_NAME
    content = json.loads(path.read_text())
    del content["tables"]["Flow"]
    path.write_text(json.dumps(content))
    assert open_catalog(directory).tables["Flow"].rows == 2


def test_the_signature_survives_copying_and_tells_other_contents(tmp_path):
    first, second = tmp_path / "a.parquet", tmp_path / "b" / "a.parquet"
    second.parent.mkdir()
    first.write_bytes(b"x" * 90_000)
    second.write_bytes(b"x" * 90_000)
    assert parts_signature({"T": [first]}) == parts_signature({"T": [second]})
    second.write_bytes(b"x" * 89_999 + b"y")
    assert parts_signature({"T": [first]}) != parts_signature({"T": [second]})


@pytest.mark.parametrize(
    "damage",
    [
        {"columns": ["start_ts", "\ud800"]},
        {"columns": [1]},
        {"columns": None},
        {"rows": -1, "part_rows": [-1]},
        {"rows": "3"},
        {"part_rows": [3, 0]},
    ],
)
def test_a_catalog_that_no_writer_writes_is_left_aside(directory, damage):
    path = directory / CATALOG_NAME
    content = json.loads(path.read_text())
    content["tables"]["Instruction"].update(damage)
    path.write_text(json.dumps(content))
    assert open_catalog(directory) == read_catalog(directory)
    with open_profile(directory) as profile:
        assert profile.sql("SELECT count(*) FROM Instruction").fetchall() == [(3,)]
