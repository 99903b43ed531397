import numpy as np
import pytest

from neuron_tools import hardware
from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.capture.tables.collectives import collective_table
from neuron_tools.capture.tables.origin import origins
from neuron_tools.capture.template import make_template, queue_kind_names
from neuron_tools.records.executable import Executable
from neuron_tools.records.program import (
    Collective,
    CollectiveKind,
    DType,
    Engine,
    Frame,
    FrameworkOperation,
    HloOperation,
    QueueKind,
)
from neuron_tools.simulator import ProgramBuilder, simulate
from tests.unit.capture.replayed import CALLER, tables

CORE = hardware.get("trn2", lnc=1)
GROUP = tuple(range(8))


GATHER = FrameworkOperation("jit(step)/mlp/all_gather", "step.mlp", stack=(Frame("net.py", 11, "mlp"),))
REDUCE = FrameworkOperation("jit(step)/transpose(jvp())/psum", "step", backward=True)


def collectives(kind: str = "graph") -> Executable:
    """An all-gather and an all-reduce of 1 MiB over eight ranks, one after the other."""
    builder = ProgramBuilder("collectives", "trn2")
    queue = builder.queue("qSyncCollective", Engine.SYNC, QueueKind.COLLECTIVE)
    for moved, operation in ((CollectiveKind.ALL_GATHER, GATHER), (CollectiveKind.ALL_REDUCE, REDUCE)):
        hlo = builder.hlo(HloOperation("moved", "moved", (builder.framework(operation),), (1.0,)))
        builder.collective(queue, Collective(moved, 1 << 20, GROUP, DType.BF16), hlo=hlo)
    program = builder.finish()
    return Executable(1, "collectives", kind, program, simulate(program, CORE))


@pytest.fixture
def executable():
    return collectives()


def _table(executable):
    known = origins(executable.program.framework, StackRegistry())
    return collective_table(make_template(executable), CORE, known, TextPools())


def test_each_collective_is_a_row_with_its_sizes_and_bandwidths(executable):
    table = _table(executable)
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
    assert _table(executable).rows == 0


def test_each_tells_operation_module_and_line_or_else_those_of_the_call(executable):
    rows = tables(executable, origin=CALLER)["CcOp"]
    assert rows["framework_name"] == [GATHER.name, REDUCE.name]
    assert rows["layer"] == ["/step/mlp", "/step"]
    assert list(zip(rows["source_file"], rows["source_line"])) == [("net.py", 11), ("call.py", 5)]
    assert rows["is_backward"] == [False, True]
    assert all(rows["stack_frame_ids"])


def test_an_eager_operations_collectives_have_the_place_of_the_call():
    rows = tables(collectives("eager"), origin=CALLER)["CcOp"]
    assert (rows["layer"], rows["source_line"]) == (["/caller"] * 2, [5, 5])
