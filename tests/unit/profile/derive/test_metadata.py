import pytest

from neuron_tools.profile.derive.metadata import utc_text
from tests.unit.profile.builders import METADATA_ROW, derived, instruction

RANGE = "SELECT first_hw_timestamp, last_hw_timestamp, first_ts, last_ts FROM Metadata"
ROWS = {"Instruction": [instruction("Tensor", 5, 38_091)]}


def test_a_row_that_was_written_at_the_start_gets_the_recorded_range(tmp_path):
    assert derived(tmp_path / "p", ROWS, RANGE) == [
        (5, 38_091, "1970-01-01T00:00:00.000000005Z", "1970-01-01T00:00:00.000038091Z")
    ]


def test_a_row_that_knows_its_range_stays(tmp_path):
    row = {**METADATA_ROW, "last_hw_timestamp": 50_000, "last_ts": "later"}
    assert derived(tmp_path / "p", {**ROWS, "Metadata": [row]}, RANGE)[0][1::2] == (50_000, "later")


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (0, "1970-01-01T00:00:00.000000000Z"),
        (1_700_000_000_000_000_001, "2023-11-14T22:13:20.000000001Z"),
    ],
)
def test_times_are_spelled_as_published(time_ns, text):
    assert utc_text(time_ns) == text
