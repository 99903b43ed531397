from neuron_profile.analysis.transfers import (
    HostTransfers,
    MemoryPeak,
    find_memory_peaks,
    measure_host_transfers,
)
from neuron_tools import open_profile


def test_copies_are_summed_by_direction(make_profile) -> None:
    with open_profile(make_profile()) as profile:
        assert measure_host_transfers(profile) == HostTransfers(4096, 1, 4, 1)


def test_the_peak_and_when_it_was(make_profile) -> None:
    with open_profile(make_profile()) as profile:
        assert find_memory_peaks(profile) == (MemoryPeak(0, 5000, 20),)


def test_an_empty_profile_moved_nothing(make_profile) -> None:
    with open_profile(make_profile(tables={})) as profile:
        assert measure_host_transfers(profile) == HostTransfers(0, 0, 0, 0)
        assert find_memory_peaks(profile) == ()
