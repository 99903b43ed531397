import pytest

from neuron_explorer.shell import range_text


@pytest.mark.parametrize(
    ("start_ns", "end_ns", "text"),
    [
        (2_468_450_000, 2_468_686_000, "236 µs from 2.46845 s"),
        (0, 1_500, "1.50 µs from 0 ns"),
        (1_200, 1_300, "100 ns from 1.2 µs"),
        (1_203, 1_204, "1 ns from 1.203 µs"),
        (5_000_000_000, 65_000_000_000, "60.0 s from 5 s"),
    ],
)
def test_a_range_is_told_as_exactly_as_its_length_asks_for(start_ns: int, end_ns: int, text: str) -> None:
    assert range_text(start_ns, end_ns) == text
