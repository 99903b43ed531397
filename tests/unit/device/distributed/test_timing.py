"""Collectives begin when their last rank is ready, queue behind their group's, and share the links."""

from hypothesis import given, strategies as st

from neuron_tools import hardware
from neuron_tools.device.distributed.header import NOT_TIMED, Header
from neuron_tools.device.distributed.timing import LinkClock, collective_cost, level_of, place
from neuron_tools.records.program import CollectiveKind

LINKS = hardware.links(hardware.device("trn2.48xlarge", lnc=1))
COST = collective_cost(CollectiveKind.ALL_REDUCE, 1 << 20, (0, 1), LINKS)


def header(ready_ns, source=0, link_free_ns=0):
    return Header(0, 1, ready_ns, link_free_ns, source, "")


def test_it_begins_when_the_last_rank_is_ready_and_tells_which():
    placed = place([header(100), header(700, source=1)], COST, 0)
    assert (placed.start_ns, placed.last) == (700, 1)
    assert placed.end_ns == 700 + round(COST.duration_ns)


def test_it_queues_behind_its_groups_collective():
    assert place([header(100), header(200, 1)], COST, 5_000).start_ns == 5_000


def test_its_bytes_wait_for_the_links_but_its_latency_does_not():
    placed = place([header(0, link_free_ns=90_000), header(0, 1)], COST, 0)
    assert placed.start_ns + round(COST.latency_ns) == 90_000


def test_ranks_without_virtual_time_count_as_ready():
    assert place([header(NOT_TIMED), header(40, 1)], COST, 0).start_ns == 40
    assert place([header(NOT_TIMED), header(NOT_TIMED, 1)], COST, 0) is None


@given(
    st.lists(st.tuples(st.integers(0, 10**7), st.integers(1, 1 << 24)), min_size=1, max_size=20),
    st.sampled_from([2, 4, 16, 64]),
)
def test_links_never_carry_more_than_they_can(issues, ranks):
    """Groups that share a rank's links: all bytes moved since the first issue fit below the limit."""
    clock, cores = LinkClock(), tuple(range(ranks))
    level, moved, end_ns = level_of(cores, LINKS), 0.0, 0
    issues = sorted(issues)
    for ready_ns, byte_count in issues:
        spent = collective_cost(CollectiveKind.ALL_GATHER, byte_count, cores, LINKS)
        free_ns = clock.reserve(level, ready_ns, spent.transfer_ns)
        placed = place([header(ready_ns, link_free_ns=free_ns)], spent, 0)
        moved += byte_count * spent.bus_factor
        end_ns = max(end_ns, placed.end_ns)
    seconds = (end_ns - issues[0][0]) * 1e-9
    assert moved / seconds <= LINKS.bus_bandwidth(cores) * 1.001


def test_groups_know_their_farthest_links():
    assert level_of((0, 1), LINKS) == "core"
    assert level_of((0, LINKS.cores_per_chip), LINKS) == "chip"
    assert level_of((0, LINKS.cores_per_chip * LINKS.chips_per_node), LINKS) == "node"
