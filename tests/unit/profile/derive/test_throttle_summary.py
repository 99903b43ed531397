import pytest

from tests.unit.profile.builders import derived, instruction


def throttle(start, duration, k, n, cause, core=0):
    return {"timestamp": start, "duration": duration, "k": k, "n": n, "type": cause, "pcore_idx": core}


def test_limits_below_the_full_rate_count_by_core_and_cause(tmp_path):
    tables = {
        "Instruction": [instruction("Tensor", 0, 1000)],
        "Throttle": [
            throttle(0, 200, 4, 8, "activity"),
            throttle(300, 100, 2, 8, "activity"),
            throttle(500, 400, 8, 8, "activity"),
            throttle(0, 100, 4, 8, "power", core=1),
        ],
    }
    rows = derived(
        tmp_path / "p",
        tables,
        """
        SELECT nc_idx, throttle_type, throttle_active_time_ns, throttle_active_time_percent,
               max_achievable_util_with_throttling_percent
        FROM ThrottleSummary
        """,
    )
    assert rows == [
        (0, "activity", 300, pytest.approx(0.3), pytest.approx(1 - (100 + 75) / 1000)),
        (1, "power", 100, pytest.approx(0.1), pytest.approx(0.95)),
    ]


def test_without_throttling_there_is_no_table(tmp_path):
    tables = {"Instruction": [instruction("Tensor", 0, 10)]}
    assert derived(tmp_path / "p", tables, "SELECT count(*) FROM ThrottleSummary") == [(0,)]
