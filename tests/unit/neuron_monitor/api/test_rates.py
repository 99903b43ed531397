import pytest
from hypothesis import given, settings, strategies as st

from neuron_monitor.api import layout
from neuron_monitor.api.latency import parse_histogram
from neuron_monitor.api.layout import packed
from neuron_monitor.api.rates import (
    CoreRates,
    core_rates,
    latency_percentiles,
    logical_rates,
)
from neuron_monitor.api.readings import CoreReading, ProcessReading


def reading(clocked=True, **counters):
    counts = [0] * len(layout.CORE_COLUMNS)
    for name, value in counters.items():
        counts[layout.COLUMN_OF[name]] = value
    return CoreReading(0, 0, 0, packed(counts), clocked)


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
    one = CoreRates(0.2, 10.0, (0.1, 0.0), (1.0,), 0.0)
    two = CoreRates(0.6, 30.0, (0.3, 0.0), (2.0,), 0.5)
    (joined,) = logical_rates({4: one, 5: two}, 2).values()
    assert joined == CoreRates(pytest.approx(0.4), 40.0, (pytest.approx(0.2), 0.0), (3.0,), 0.25)
    assert joined.engines == {"tensor": pytest.approx(0.2), "vector": 0.0}


def test_latency_is_that_of_what_a_process_added():
    def process(count):
        return ProcessReading(
            1, "1", "", "", 1, {}, latency={"device": parse_histogram({"1000": count, "2000": 2})}
        )

    found = latency_percentiles(process(5), process(9), "device")
    assert (found[0], found[100]) == (1e-6, 1e-6)
    assert latency_percentiles(process(5), process(9), "total") is None
    assert latency_percentiles(process(5)._replace(latency={}), process(9), "device")[100] == 2e-6
