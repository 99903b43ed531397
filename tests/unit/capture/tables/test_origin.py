import numpy as np

from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.capture.tables.origin import (
    NUMBER_COLUMNS,
    PLACE_COLUMNS,
    TEXT_COLUMNS,
    callers,
    execution_origin,
    layer_path,
    origins,
)
from neuron_tools.records.program import Frame, FrameworkOperation

OPERATIONS = (
    FrameworkOperation("aten::mul", "net.0", "Scale", (Frame("a.py", 3), Frame("b.py", 9)), backward=True),
    FrameworkOperation("aten::add"),
)
NONE = -1


def test_columns_of_operations_and_of_none():
    made = origins(OPERATIONS, StackRegistry())
    rows = np.array([1, 0, NONE])
    pools = TextPools()
    codes = made.text_codes(PLACE_COLUMNS | {"framework_name"}, rows, pools)
    texts = {name: pools[name].array(values).to_pylist() for name, values in codes.items()}
    assert texts == {
        "layer": ["", "/net/0", ""],
        "source_file": [None, "a.py", None],
        "framework_name": ["aten::add", "aten::mul", ""],
    }
    numbers = made.number_columns(NUMBER_COLUMNS, rows)
    assert numbers["source_line"].tolist() == [0, 3, 0]
    assert numbers["is_backward"].tolist() == [False, True, False]


def test_an_eager_operation_takes_everything_from_its_execution():
    taken = origins(OPERATIONS, StackRegistry()).from_execution("eager", TEXT_COLUMNS, np.array([0, 1]))
    assert taken == {"origin": TEXT_COLUMNS, "origin_numbers": NUMBER_COLUMNS}


def test_each_of_several_fused_operations_takes_from_its_own_call():
    taken = origins(OPERATIONS, StackRegistry()).from_execution("fused", TEXT_COLUMNS, np.array([1, 0]))
    assert (taken["origin"], taken["members"].tolist()) == (TEXT_COLUMNS, [1, 0])


def test_a_graphs_operation_takes_only_a_line_it_has_not():
    taken = origins(OPERATIONS, StackRegistry()).from_execution("graph", TEXT_COLUMNS, np.array([0, 1, NONE]))
    assert taken["origin"] == {"stack_frame_ids", "source_file"}
    assert taken["origin_numbers"] == {"source_line"}
    assert taken["origin_rows"].tolist() == [False, True, True]


def test_an_executions_origin_is_its_innermost_frame():
    stack = (Frame("a.py", 3), Frame("b.py", 9))
    origin = execution_origin(
        stack, "net.0", lambda frames: str(len(frames)), backward=True, recomputed=False
    )
    assert origin.texts == {"layer": "/net/0", "stack_frame_ids": "2", "source_file": "a.py"}
    assert origin.numbers == {"source_line": 3, "is_backward": True, "is_recomputed": False}


def test_an_execution_without_a_stack():
    origin = execution_origin((), "", StackRegistry().leaf, backward=False, recomputed=True)
    assert origin.texts == {"layer": "", "stack_frame_ids": "", "source_file": None}
    assert origin.numbers == {"source_line": 0, "is_backward": False, "is_recomputed": True}


def test_what_is_computed_again_was_called_by_what_called_the_forward_operation():
    library, block = Frame("lib.py", 7, "mlp"), Frame("lib.py", 3, "block")
    model, script = Frame("lib.py", 2, "model"), Frame("train.py", 9)
    forward = (Frame("lib.py", 8, "attention"), Frame("lib.py", 4, "block"), model, script)
    assert callers((library, block), forward) == (model, script)
    assert callers((Frame("torch.py", 1, "linear"),), (script,)) == (script,)
    assert callers((), forward) == ()


def test_layers_are_paths():
    assert layer_path("model.layers.0.mlp") == "/model/layers/0/mlp"
    assert layer_path("") == ""


def test_work_outside_of_all_modules_has_its_function_or_script():
    assert (
        layer_path("", (Frame("a/train.py", 3, "train_step"), Frame("a/train.py", 9, "<module>")))
        == "/train_step()"
    )
    assert layer_path("", (Frame("a/train.py", 9, "<module>"),)) == "/train.py"
