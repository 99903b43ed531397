import io
import json

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from neuron_tools.profile.export.json_text import json_objects, microseconds, write_lists

TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.none() | st.integers(-(1 << 63), (1 << 63) - 1)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": TEXTS,
            "number": NUMBERS,
            "share": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "flag": st.none() | st.booleans(),
            "list": st.none() | st.lists(st.integers(0, 9), max_size=3),
        }
    ),
    min_size=1,
    max_size=20,
)
TYPES = {
    "text": pa.string(),
    "number": pa.int64(),
    "share": pa.float64(),
    "flag": pa.bool_(),
    "list": pa.list_(pa.int64()),
}


@given(ROWS)
def test_objects_read_back_as_the_rows_without_their_nulls(rows):
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()}

    texts = json_objects(columns, len(rows)).to_pylist()

    expected = [{name: value for name, value in row.items() if value is not None} for row in rows]
    assert [json.loads(text) for text in texts] == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_json_cannot_say_is_left_out(value):
    column = pa.array([value, 1.5], pa.float64())

    assert json_objects({"x": column}, 2).to_pylist() == ["{}", '{"x":1.5}']


def test_raw_columns_are_taken_as_they_are():
    column = pa.array(['[{"id":1}]', None])

    assert json_objects({"list": column}, 2, raw=["list"]).to_pylist() == ['{"list":[{"id":1}]}', "{}"]


def test_rows_without_columns_are_empty_objects():
    assert json_objects({}, 2).to_pylist() == ["{}", "{}"]


@given(st.lists(st.integers(0, 1 << 60), min_size=1))
def test_microseconds_are_exact(values):
    texts = microseconds(values).to_pylist()

    assert [int(text.replace(".", "")) for text in texts] == values
    assert all(len(text.partition(".")[2]) == 3 for text in texts)


def test_lists_come_in_pieces_and_may_be_empty():
    stream = io.BytesIO()
    pieces = [pa.array(["1", "2"]), pa.array([], pa.string()), pa.array(["3"])]

    counts = write_lists(stream, iter([("a", iter(pieces)), ("b", iter([]))]))

    assert json.loads(stream.getvalue()) == {"a": [1, 2, 3], "b": []}
    assert counts == {"a": 3, "b": 0}
