import numpy as np
import pyarrow as pa
import pytest

from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.store.columns import ColumnError, to_arrow

SPAN = TABLES["HostSpan"]


def span(**changes):
    columns = {
        "start_ts": [0, 5],
        "end_ts": [5, 9],
        "duration_ns": [5, 4],
        "process_idx": [0, 0],
        "thread_idx": [0, 1],
        "name": ["forward", "step"],
        "kind": ["module", "step"],
    }
    return {**columns, **changes}


def test_columns_come_in_schema_order_with_schema_types():
    table = to_arrow(SPAN, dict(reversed(span().items())))
    assert table.column_names == [name for name in SPAN.column_names if name in span()]
    assert table.schema.field("process_idx").type == pa.int32()
    assert table.schema.field("name").type == pa.dictionary(pa.int32(), pa.string())
    assert table.column("name").to_pylist() == ["forward", "step"]


@pytest.mark.parametrize(
    "process",
    [
        np.array([0, 1], np.int64),
        np.array([0, 1], np.uint8),
        [0, 1],
        pa.array([0, 1]),
        pa.chunked_array([[0], [1]]),
    ],
)
def test_arrays_lists_and_arrow_are_taken_alike(process):
    assert to_arrow(SPAN, span(process_idx=process)).column("process_idx").to_pylist() == [0, 1]


def test_dictionary_arrays_keep_their_values():
    names = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array(["a", "b"]))
    assert to_arrow(SPAN, span(name=names)).column("name").to_pylist() == ["b", "a"]


def test_an_arrow_table_is_taken_as_it_is():
    assert to_arrow(SPAN, pa.table(span())).num_rows == 2


def test_no_rows_are_fine():
    empty = {name: [] for name in span()}
    assert to_arrow(SPAN, empty).num_rows == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colour": [1, 2]}, "no column colour"),
        ({"name": ["a", None]}, "HostSpan.name is required, but 1 of its values are null"),
        ({"start_ts": ["a", "b"]}, "HostSpan.start_ts must be int64"),
        ({"start_ts": [0.5, 1.0]}, "HostSpan.start_ts must be int64"),
        ({"start_ts": ["1", "2"]}, "HostSpan.start_ts must be int64"),
        ({"name": [1, 2]}, "HostSpan.name must be string"),
        ({"process_idx": np.array([0, 2**40])}, "HostSpan.process_idx must be int32"),
        ({"start_ts": [1]}, "differ in length"),
    ],
)
def test_what_does_not_fit_is_named(changes, message):
    with pytest.raises(ColumnError, match=message):
        to_arrow(SPAN, span(**changes))


def test_a_missing_required_column_is_named():
    columns = span()
    del columns["kind"]
    with pytest.raises(ColumnError, match="HostSpan needs the column kind"):
        to_arrow(SPAN, columns)
