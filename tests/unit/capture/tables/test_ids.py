import numpy as np

from neuron_tools.capture.tables.ids import at, id_layout
from neuron_tools.capture.template import make_template
from tests.unit.capture.programs import fused_executable


def test_an_executions_ids_are_one_run_without_gaps():
    layout = id_layout(make_template(fused_executable()))
    assert layout.framework.tolist() == [0, 1, -1]
    assert layout.hlo.tolist() == [2, 3, -1]
    assert layout.instruction.tolist() == [4, 5, 6, 7]
    assert layout.dma.tolist() == [8, 9]
    assert layout.count == 10


def test_a_missing_reference_has_no_position():
    assert at(np.array([10, 11]), np.array([1, -1, 0])).tolist() == [11, -1, 10]
    assert at(np.zeros(0, np.int64), np.array([-1, -1])).tolist() == [-1, -1]
