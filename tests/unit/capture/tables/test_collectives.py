import numpy as np
import pytest

from neuron_tools import hardware
from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.tables.collectives import collective_table
from neuron_tools.capture.template import make_template, queue_kind_names
from neuron_tools.records.executable import Executable
from neuron_tools.records.program import Collective, CollectiveKind, DType, Engine, QueueKind
from neuron_tools.simulator import ProgramBuilder, simulate

CORE = hardware.get("trn2", lnc=1)
GROUP = tuple(range(8))


@pytest.fixture
def executable():
    """An all-gather and an all-reduce of 1 MiB over eight ranks, one after the other."""
    builder = ProgramBuilder("collectives", "trn2")
    queue = builder.queue("qSyncCollective", Engine.SYNC, QueueKind.COLLECTIVE)
    for kind in (CollectiveKind.ALL_GATHER, CollectiveKind.ALL_REDUCE):
        builder.collective(queue, Collective(kind, 1 << 20, GROUP, DType.BF16))
    program = builder.finish()
    return Executable(1, "collectives", "graph", program, simulate(program, CORE))


def test_each_collective_is_a_row_with_its_sizes_and_bandwidths(executable):
    pools = TextPools()
    table = collective_table(make_template(executable), CORE, pools)
    assert table.rows == 2
    assert table.numbers["input_size"].tolist() == [1 << 17, 1 << 20]
    assert table.numbers["output_size"].tolist() == [1 << 20, 1 << 20]
    assert table.numbers["num_elements"].tolist() == [1 << 19, 1 << 19]
    duration_ns = table.times["end_ts"] - table.times["start_ts"]
    np.testing.assert_allclose(table.numbers["algorithm_bandwidth"], (1 << 20) / (duration_ns * 1e-9))
    factors = table.numbers["bus_bandwidth"] / table.numbers["algorithm_bandwidth"]
    np.testing.assert_allclose(factors, [7 / 8, 2 * 7 / 8])
    assert (table.times["trigger_start_ts"] <= table.times["start_ts"]).all()


def test_what_is_called_a_queue_of_collectives_has_a_published_name(executable):
    assert queue_kind_names(executable.program) == ["data", "data"]


def test_a_program_without_collectives_has_no_rows():
    program = ProgramBuilder("empty", "trn2").finish()
    executable = Executable(1, "empty", "graph", program, simulate(program, CORE))
    assert collective_table(make_template(executable), CORE, TextPools()).rows == 0
