import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from neuron_tools.profile.schema import TABLES, arrow_schema
from neuron_tools.profile.store.columns import to_arrow
from neuron_tools.profile.store.window import Workspace, sorted_window
from tests.unit.profile.builders import columns, instruction

TABLE = TABLES["Instruction"]
ENGINES = ("Tensor", "Vector", "Scalar")
rows = st.lists(st.tuples(st.sampled_from(ENGINES), st.integers(0, 50), st.integers(0, 2)), min_size=1)


def pieces_of(picked, cuts):
    made = [
        instruction(engine, start, start + 5, id=number, pcore_idx=core)
        for number, (engine, start, core) in enumerate(picked)
    ]
    edges = [0, *sorted(cut % (len(made) + 1) for cut in cuts), len(made)]
    chunks = [made[a:b] for a, b in itertools.pairwise(edges)]
    return [to_arrow(TABLE, columns(chunk)) for chunk in chunks if chunk]


@settings(deadline=None, max_examples=50)
@given(rows, st.lists(st.integers(0, 100), max_size=3))
def test_rows_are_sorted_by_track_and_time_however_they_were_cut(picked, cuts):
    window = sorted_window(TABLE, pieces_of(picked, cuts))
    numbered = [(core, engine, start, number) for number, (engine, start, core) in enumerate(picked)]
    names = ("pcore_idx", "engine", "start_ts", "id")
    found = list(zip(*(window.column(name).to_pylist() for name in names), strict=True))
    assert found == sorted(numbered)
    assert window.schema.equals(arrow_schema("Instruction"))


def test_columns_that_a_piece_lacks_are_null_there():
    first = to_arrow(TABLE, columns([instruction("Tensor", 5, 6, id=1)]))
    second = to_arrow(TABLE, {**columns([instruction("Tensor", 0, 1, id=2)]), "layer": ["/a"]})
    assert sorted_window(TABLE, [first, second]).column("layer").to_pylist() == ["/a", None]


def test_a_workspace_serves_windows_of_any_size():
    workspace = Workspace()
    for count in (3, 50, 7):
        picked = [("Vector" if n % 2 else "Tensor", count - n, 0) for n in range(count)]
        window = sorted_window(TABLE, pieces_of(picked, [2]), workspace)
        assert window.column("start_ts").to_pylist() == [row[1] for row in sorted(picked)]


@pytest.mark.parametrize("name", ["StackFrameFileName", "Warning"])
def test_rows_of_tables_without_time_stay_as_they_came(name):
    field = next(field for field in TABLES[name].fields if field.type == "string")
    given = {f.name: ["b", "a"] for f in TABLES[name].fields if f.required}
    assert sorted_window(TABLES[name], [to_arrow(TABLES[name], given)]).column(field.name).to_pylist() == [
        "b",
        "a",
    ]


def test_lists_and_flags_move_with_their_rows():
    table = TABLES["HloInstruction"]
    base = {field.name: 0 for field in table.fields if field.required and field.type in ("int64", "int32")}
    lists = {field.name for field in table.fields if field.required and field.type.startswith("list")}
    texts = {field.name for field in table.fields if field.required and field.type == "string"}
    given = {name: np.zeros(2, np.int64) for name in base}
    given |= {name: pa.array([[1], [2]], pa.list_(pa.int64())) for name in lists}
    given |= {name: ["first", "second"] for name in texts}
    given |= {"start_ts": [9, 3], "is_backward": [True, False]}
    window = sorted_window(table, [to_arrow(table, given)])
    assert window.column("hlo_name").to_pylist() == ["second", "first"]
    assert window.column("element_count_per_interval").to_pylist() == [[2], [1]]
    assert window.column("is_backward").to_pylist() == [False, True]
