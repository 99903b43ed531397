import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuron_monitor.api import layout
from neuron_monitor.api.rates import (
    CoreRates,
    core_rates,
    latency_between,
    latency_percentiles,
    logical_rates,
    percentiles,
)
from neuron_monitor.api.readings import CoreReading, ProcessCore, ProcessReading


def reading(clocked=True, **counters):
    counts = [0] * len(layout.CORE_COLUMNS)
    for name, value in counters.items():
        counts[layout.COLUMN_OF[name]] = value
    return CoreReading(0, 0, 0, tuple(counts), clocked)


def process(**latency):
    core = ProcessCore(reading(), {"device": latency, "total": {}})
    return ProcessReading(1, "1", "", "", 1, {0: core})


def test_rates_are_differences_by_the_time_that_passed():
    after = reading(nc_time_in_use=250_000, flop_count=10**12, tensor=100_000_000, dma_bytes=4096)
    rates = core_rates(reading(), after, 500_000_000)
    assert rates.utilization == pytest.approx(0.5)
    assert rates.flops_per_second == pytest.approx(2 * 10**12)
    assert rates.engines["tensor"] == pytest.approx(0.2)
    assert rates.bytes_per_second["dma_bytes"] == pytest.approx(8192)


def test_a_real_driver_has_neither_engines_nor_traffic():
    rates = core_rates(reading(False), reading(False, nc_time_in_use=100), 1_000_000)
    assert (rates.utilization, rates.engines, rates.throttled) == (pytest.approx(0.1), {}, None)


@pytest.mark.parametrize("elapsed_ns", [0, -5])
def test_no_time_is_no_rate(elapsed_ns):
    rates = core_rates(reading(), reading(nc_time_in_use=5, tensor=3), elapsed_ns)
    assert (rates.utilization, rates.engines["tensor"], rates.throttled) == (0, 0, 0)


def test_counters_that_were_reset_are_idle():
    assert core_rates(reading(nc_time_in_use=9), reading(nc_time_in_use=1), 1000).utilization == 0


@settings(deadline=None)
@given(st.integers(0, 2**62), st.integers(0, 2**62), st.integers(-(2**40), 2**62), st.integers(0, 2**62))
def test_shares_stay_within_bounds_whatever_the_counters_say(before, after, elapsed_ns, engine):
    rates = core_rates(
        reading(nc_time_in_use=before), reading(nc_time_in_use=after, tensor=engine), elapsed_ns
    )
    assert 0 <= rates.utilization <= 1
    assert all(0 <= share <= 1 for share in rates.engines.values())


def test_a_logical_core_is_the_mean_of_shares_and_the_sum_of_amounts():
    one = CoreRates(0.2, 10.0, {"tensor": 0.1}, {"dma_bytes": 1.0}, 0.0)
    two = CoreRates(0.6, 30.0, {"tensor": 0.3}, {"dma_bytes": 2.0}, 0.5)
    (joined,) = logical_rates({4: one, 5: two}, 2).values()
    assert joined == CoreRates(
        pytest.approx(0.4), 40.0, {"tensor": pytest.approx(0.2)}, {"dma_bytes": 3.0}, 0.25
    )


def test_percentiles_are_the_bounds_at_which_they_are_reached():
    found = percentiles({"2000": 1, "1000": 98, "9000": 1})
    assert found == {0: 1e-6, 1: 1e-6, 25: 1e-6, 50: 1e-6, 75: 1e-6, 99: 2e-6, 100: 9e-6}


def test_no_executions_have_no_percentiles():
    assert percentiles({}) is None


@settings(deadline=None)
@given(st.dictionaries(st.integers(1, 10**12).map(str), st.integers(1, 10**6), min_size=1))
def test_percentiles_rise_and_lie_among_the_bounds(histogram):
    found = percentiles(histogram)
    values = list(found.values())
    assert values == sorted(values)
    assert set(values) <= {int(bound) / 1e9 for bound in histogram}
    assert values[-1] == max(map(int, histogram)) / 1e9


histograms = st.dictionaries(st.integers(1, 60).map(str), st.integers(1, 50), max_size=8)


@settings(deadline=None)
@given(histograms, st.lists(histograms, min_size=1, max_size=3), st.booleans())
def test_percentiles_of_a_period_are_those_of_what_was_added(before, added, is_sorted):
    def several(each):
        cores = {
            number: ProcessCore(
                reading(), {"device": dict(sorted(one.items(), key=lambda item: int(item[0])))}
            )
            if is_sorted
            else ProcessCore(reading(), {"device": one})
            for number, one in enumerate(each)
        }
        return ProcessReading(1, "1", "", "", 1, cores)

    old = several([before] * len(added))
    new = several(
        [{key: before.get(key, 0) + more.get(key, 0) for key in {**before, **more}} for more in added]
    )
    assert latency_percentiles(old, new, "device") == percentiles(latency_between(old, new, "device"))


def test_latencies_of_a_period_are_what_was_added():
    before, after = process(**{"1000": 5, "2000": 1}), process(**{"1000": 5, "2000": 4, "3000": 2})
    assert latency_between(before, after, "device") == {"2000": 3, "3000": 2}
    assert latency_between(before, after, "total") == {}
