"""Results are kept within the block that asks for it, by profile, and nowhere else."""

from __future__ import annotations

import neuron_tools
from neuron_profile.analysis.remembered import remembered, remembering


def test_a_result_is_kept_until_the_end_of_the_block(make_profile):
    seen = []

    @remembered
    def count(profile):
        seen.append(profile)
        return len(seen)

    with (
        neuron_tools.open_profile(make_profile()) as profile,
        neuron_tools.open_profile(make_profile("other.nprof")) as other,
    ):
        assert [count(profile), count(profile)] == [1, 2]
        with remembering(profile):
            assert [count(profile), count(profile), count(other), count(other)] == [3, 3, 4, 5]
        assert count(profile) == 6
