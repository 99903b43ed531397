import pytest

from neuron_profile.reports.quantities import count, duration, percent, scaled


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1.00 µs"),
        (12_340, "12.3 µs"),
        (999_400, "999 µs"),
        (999_600, "1.00 ms"),
        (41_237_000, "41.2 ms"),
        (3.2e9, "3.20 s"),
        (7.2e12, "7200 s"),
        (0.4, "0 ns"),
    ],
)
def test_durations(nanoseconds: float, text: str) -> None:
    assert duration(nanoseconds) == text


def test_numbers_with_prefix() -> None:
    assert [scaled(n, "B") for n in (0, 999, 12_345_000, 5e12)] == ["0 B", "999 B", "12.3 MB", "5.00 TB"]


def test_percents_and_counts() -> None:
    assert [percent(value) for value in (0, 0.00001, 0.0004, 0.0423, 1)] == [
        "0.0 %",
        "0.00 %",
        "0.04 %",
        "4.2 %",
        "100.0 %",
    ]
    assert [count(1, "process"), count(2, "process"), count(1203, "copy"), count(0, "core")] == [
        "1 process",
        "2 processes",
        "1,203 copies",
        "0 cores",
    ]
