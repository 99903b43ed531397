import numpy as np
import pyarrow as pa
import pytest

from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.store.columns import to_arrow
from neuron_tools.profile.store.encoding import SAMPLE_ROWS, writer_options
from neuron_tools.profile.store.window import sorted_window

TABLE = TABLES["Instruction"]


def options_of(rows=2 * SAMPLE_ROWS, **columns):
    random = np.random.default_rng(0)
    given = {
        "id": np.arange(rows),
        "start_ts": np.arange(rows) * 10,
        "end_ts": np.arange(rows) * 10 + 5,
        "duration_ns": np.full(rows, 5),
        "pc": random.permutation(rows),
        **{name: pa.array(["a"] * rows) for name in ("engine", "opcode", "operands", "bir_id")},
        **columns,
    }
    return writer_options(TABLE, sorted_window(TABLE, [to_arrow(TABLE, given)]))


def test_times_and_ids_are_kept_as_differences():
    encodings = options_of()["column_encoding"]
    assert {encodings[name] for name in ("id", "start_ts", "end_ts", "pc")} == {"DELTA_BINARY_PACKED"}


def test_long_runs_are_kept_plain_under_the_fast_compressor():
    options = options_of(raw_flops=np.repeat([1, 2], SAMPLE_ROWS))
    assert (options["compression"]["raw_flops"], options["column_encoding"]["raw_flops"]) == ("lz4", "PLAIN")


def test_few_values_in_any_order_get_a_dictionary():
    values = np.random.default_rng(0).integers(0, 9, 2 * SAMPLE_ROWS) * 1_000_003
    assert "raw_flops" in options_of(raw_flops=values)["use_dictionary"]


def test_texts_get_a_dictionary_and_empty_columns_nothing():
    options = options_of()
    assert "opcode" in options["use_dictionary"]
    assert options["compression"]["layer"] == "none"


def test_equal_rows_get_equal_encodings():
    assert options_of() == options_of()


@pytest.mark.parametrize("rows", [1, 10, SAMPLE_ROWS - 1])
def test_small_parts_are_encoded_too(rows):
    assert "pc" in options_of(rows)["use_dictionary"]


def test_statistics_are_kept_for_what_is_searched_by_range():
    assert options_of()["write_statistics"] == ["start_ts", "end_ts", "id"]
