import numpy as np

from neuron_tools.capture.attribution import (
    IN_BACKWARD,
    REMEMBERED_THREADS,
    Attribution,
    LoggedExecution,
    Origin,
)
from neuron_tools.capture.host_rows import IN_OPTIMIZER
from neuron_tools.records.capture_log import RECORD_DTYPE, RecordKind


def record(
    *,
    kind=RecordKind.OPERATION,
    stack=0,
    module=0,
    sequence=-1,
    forward=-1,
    thread=1,
    forward_thread=1,
    flags=0,
):
    row = np.zeros(1, RECORD_DTYPE)
    row["kind"] = kind
    row["stack"], row["module"], row["thread"] = stack, module, thread
    row["sequence"], row["forward_sequence"], row["forward_thread"] = sequence, forward, forward_thread
    row["flags"] = flags
    return next(LoggedExecution.of(row))


def test_a_forward_operation_has_its_own_origin():
    assert Attribution().origin(record(stack=3, module=2, sequence=0)) == Origin(3, 2, False)


def test_backward_takes_the_forward_operations_line_and_module():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=0))
    attribution.origin(record(stack=4, module=5, sequence=1))
    assert attribution.origin(record(forward=0, thread=9)) == Origin(3, 2, True)


def test_the_first_operation_that_made_a_node_owns_it():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=7))
    attribution.origin(record(stack=4, module=2, sequence=7))
    assert attribution.origin(record(forward=7, thread=9)).stack == 3


def test_a_node_without_a_record_belongs_to_the_operation_before_it():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=10))
    attribution.origin(record(stack=4, module=2, sequence=20))
    assert attribution.origin(record(forward=15, thread=9)).stack == 3


def test_sequence_numbers_of_two_threads_are_kept_apart():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=0, thread=1))
    attribution.origin(record(stack=8, module=2, sequence=0, thread=2))
    assert attribution.origin(record(forward=0, thread=9, forward_thread=2)).stack == 8


def test_gradient_accumulation_takes_the_last_origin():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=5))
    assert attribution.origin(record(forward=2, thread=9)) == Origin(3, 2, True)


def test_an_operation_without_a_stack_outside_backward_is_not_marked_backward():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=0))
    assert attribution.origin(record()) == Origin(3, 2, False)


def test_backward_of_work_outside_of_modules_stays_outside():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=0))
    attribution.origin(record(stack=4, module=0, sequence=1))
    assert attribution.origin(record(forward=1, thread=9)) == Origin(4, 0, True)


def test_what_backward_makes_for_no_forward_operation_is_in_the_last_module():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2))
    attribution.origin(record(stack=4, module=0))
    assert attribution.origin(record(stack=6, forward=1)) == Origin(6, 2, True)


def test_only_the_last_forward_operations_are_remembered(monkeypatch):
    monkeypatch.setattr("neuron_tools.capture.attribution.REMEMBERED", 10)
    attribution = Attribution()
    for sequence in range(1000):
        attribution.origin(record(stack=sequence + 1, sequence=sequence))
    assert len(attribution._forward[1].sequence) < 20
    assert attribution.origin(record(stack=0, forward=995, forward_thread=1)).stack == 996


def test_only_the_last_threads_are_remembered():
    attribution = Attribution()
    for thread in range(1, 100):
        attribution.origin(record(stack=thread, sequence=1, thread=thread))
    assert len(attribution._forward) == REMEMBERED_THREADS
    assert attribution.origin(record(stack=0, forward=1, forward_thread=99)).stack == 99


def test_a_module_called_again_in_backward_is_forward_at_its_own_line():
    """As activation checkpointing does; its derivative then is found on the thread of the second call."""
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=0))
    attribution.origin(record(stack=4, module=5, sequence=1))
    again = record(stack=3, module=2, sequence=0, forward=1, thread=9)
    assert attribution.origin(again) == Origin(3, 2, False, recomputed=True, caller=4)
    again = record(stack=4, module=5, sequence=1, forward=1, thread=9)
    assert attribution.origin(again) == Origin(4, 5, False, recomputed=True, caller=4)
    gradient = record(forward=0, thread=9, forward_thread=9)
    assert attribution.origin(gradient) == Origin(3, 2, True, caller=4)


def test_a_backward_written_in_python_is_backward_at_its_own_line():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=0))
    written = record(stack=7, forward=0, thread=9)
    assert attribution.origin(written) == attribution.passive_origin(written) == Origin(7, 2, True, caller=3)


def test_a_graphs_backward_is_at_the_forward_line_not_where_graphs_are_run():
    attribution = Attribution()
    attribution.origin(record(kind=RecordKind.GRAPH, stack=3, module=2, sequence=0))
    backward = record(kind=RecordKind.GRAPH, stack=8, forward=0, thread=9, flags=IN_BACKWARD)
    assert attribution.origin(backward) == Origin(3, 2, True)


def test_what_python_computes_again_to_differentiate_it_is_forward():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=0))
    again = record(stack=7, sequence=0, forward=0, thread=9)
    assert attribution.origin(again) == Origin(7, 0, False, recomputed=True, caller=3)
    gradient = record(forward=0, thread=9, forward_thread=9)
    assert attribution.origin(gradient) == Origin(7, 0, True, caller=3)


def test_what_a_hook_does_is_backward_at_its_own_line():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=0))
    hook = record(stack=7, flags=IN_BACKWARD)
    assert attribution.origin(hook) == attribution.passive_origin(hook) == Origin(7, 0, True)


def test_a_hook_is_called_by_what_called_the_operation_whose_gradient_was_computed():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=0))
    attribution.origin(record(stack=4, module=2, sequence=1))
    attribution.origin(record(forward=0, thread=9))
    assert attribution.origin(record(stack=7, thread=9, flags=IN_BACKWARD)) == Origin(7, 0, True, caller=3)
    step = record(stack=8, module=5, thread=9, flags=IN_BACKWARD | IN_OPTIMIZER)
    assert attribution.origin(step) == Origin(8, 5, False, caller=3)


def test_a_hook_before_the_first_gradient_is_not_called_by_the_pass_before():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=0))
    attribution.origin(record(forward=0, thread=9, flags=IN_BACKWARD))
    attribution.origin(record(stack=4, module=2, sequence=1))
    assert attribution.origin(record(stack=6, thread=9, flags=IN_BACKWARD)) == Origin(6, 0, True)


def test_a_hook_follows_the_gradient_of_its_own_thread():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=0))
    attribution.origin(record(stack=4, module=2, sequence=1))
    attribution.origin(record(forward=0, thread=9, flags=IN_BACKWARD))
    attribution.origin(record(forward=1, thread=8, flags=IN_BACKWARD))
    assert attribution.origin(record(stack=6, thread=9, flags=IN_BACKWARD)).caller == 3


def test_memory_of_a_backward_pass_is_that_of_the_forward_operation():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=0))
    assert attribution.passive_origin(record(forward=0, flags=IN_BACKWARD)) == Origin(3, 2, True)


def test_memory_of_a_module_called_again_in_backward_is_forward():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=0))
    again = record(stack=4, module=5, forward=0, flags=IN_BACKWARD)
    assert attribution.passive_origin(again) == Origin(4, 5, False, recomputed=True, caller=3)


def test_nobody_before_a_checkpoints_own_node_called_what_it_computes_again():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=0))
    again = record(stack=4, module=5, forward=1, flags=IN_BACKWARD)
    assert attribution.origin(again) == Origin(4, 5, False, recomputed=True)


def test_an_optimizer_that_steps_in_a_backward_pass_computes_nothing_again():
    attribution = Attribution()
    attribution.origin(record(stack=3, module=2, sequence=0))
    step = record(stack=4, module=5, forward=0, flags=IN_BACKWARD | IN_OPTIMIZER)
    assert attribution.origin(step) == Origin(4, 5, False)
