"""FrameworkShare rows."""

from neuron_tools import hardware
from neuron_tools.capture.executions import Execution, ExecutionTables
from neuron_tools.capture.stacks import StackRegistry
from tests.unit.capture.programs import fused_executable
from tests.unit.capture.replayed import NO_ORIGIN, plain


def test_a_fused_operation_has_a_row_for_each_part_that_refer_to_their_execution():
    executable = fused_executable()
    tables = ExecutionTables(hardware.get("trn2", lnc=1), 0, 0, StackRegistry())
    tables.add(executable)
    rows = tables.rows([Execution(7, 0, 0, (NO_ORIGIN,)), Execution(7, 50_000, 0, (NO_ORIGIN,))])
    expected = [op.shares for op in executable.program.hlo if len(op.framework) > 1]
    shares = plain(rows["FrameworkShare"]["share"])
    assert shares == [share for part in expected for share in part] * 2
    assert sum(shares) == 2 * len(expected)
    known = set(plain(rows["FrameworkInstruction"]["id"]))
    assert set(plain(rows["FrameworkShare"]["raw_framework_id"])) <= known
    assert set(plain(rows["FrameworkShare"]["raw_hlo_id"])) <= set(plain(rows["HloInstruction"]["id"]))
