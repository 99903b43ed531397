import numpy as np
import pyarrow as pa

from neuron_tools.profile.export.modules import ModuleSpans
from neuron_tools.profile.export.timeline import Slices


def operations(*spans):
    return Slices(
        np.array([start for start, _ in spans], np.int64),
        np.array([end for _, end in spans], np.int64),
        pa.array([f"op{index}" for index in range(len(spans))]).dictionary_encode(),
    )


def added(slices, layers, backward=None):
    """Lane -> (name, start, end) of its slices."""
    flags = np.array(backward if backward is not None else [False] * len(slices))
    everything, lanes, module_count = ModuleSpans().add(slices, pa.array(layers, pa.string()), flags)
    assert module_count == len(everything) - len(slices)
    rows = zip(everything.name.to_pylist(), everything.start_ns.tolist(), everything.end_ns.tolist())
    found = {}
    for lane, row in zip(lanes.tolist(), rows):
        found.setdefault(lane, []).append(row)
    return found


def test_neighbours_share_the_modules_that_their_paths_share():
    found = added(operations((0, 4), (4, 9), (10, 12)), ["/m/a", "/m/a", "/m/b"])

    assert found == {
        0: [("m", 0, 12), ("a", 0, 9), ("op0", 0, 4), ("op1", 4, 9), ("b", 10, 12), ("op2", 10, 12)]
    }


def test_a_module_that_is_left_and_entered_again_is_two_slices():
    found = added(operations((0, 1), (1, 2), (2, 3)), ["/m/a", "/m/b", "/m/a"])

    assert [row[0] for row in found[0]] == ["m", "a", "op0", "b", "op1", "a", "op2"]


def test_backward_operations_stand_in_a_slice_of_their_own():
    found = added(operations((0, 1), (1, 3)), ["/m", "/m"], [False, True])

    assert found[0] == [("m", 0, 1), ("op0", 0, 1), ("backward", 1, 3), ("m", 1, 3), ("op1", 1, 3)]


def test_overlapping_operations_go_to_lanes_with_modules_of_their_own():
    found = added(operations((0, 10), (8, 20)), ["/m/a", "/m/b"])

    assert found == {
        0: [("m", 0, 10), ("a", 0, 10), ("op0", 0, 10)],
        1: [("m", 8, 20), ("b", 8, 20), ("op1", 8, 20)],
    }


def test_an_operation_outside_all_modules_has_none():
    assert added(operations((0, 1), (2, 3)), [None, ""]) == {0: [("op0", 0, 1), ("op1", 2, 3)]}
