"""Which ranks of the simulated job the ranks that run stand for."""

import pytest

from neuron_tools.device.distributed.replication import replication
from neuron_tools.errors import UsageError


def test_nothing_is_replicated_unless_asked():
    assert replication(4, 0).replicas == 1
    assert replication(4, 0).simulated_ranks([0, 1, 2, 3]) == (0, 1, 2, 3)


def test_the_whole_job_reaches_over_all_replicas():
    assert replication(2, 6).simulated_ranks([0, 1]) == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("ranks", "over"), [([0, 2], True), ([1, 3], True), ([0, 1], False), ([2, 3], False), ([0, 3], False)]
)
def test_groups_of_the_outermost_dimension_do_too(ranks, over):
    """Of a mesh of 2 x 2 ranks."""
    job = replication(4, 8)
    assert job.reaches_over_replicas(ranks) is over
    assert (len(job.simulated_ranks(ranks)) == 4) is over


def test_ranks_that_do_not_divide_are_refused():
    with pytest.raises(UsageError, match="multiple of 4"):
        replication(4, 6)
