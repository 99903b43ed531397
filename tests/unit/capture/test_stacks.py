from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.records.program import Frame

MAIN, STEP, LAYER = Frame("t.py", 30, "main"), Frame("t.py", 20, "step"), Frame("m.py", 5, "forward")


def test_a_stack_is_its_innermost_frame_with_its_callers():
    registry = StackRegistry()
    leaf = registry.leaf((LAYER, STEP, MAIN))
    rows = {row["id"]: row for row in registry.take_rows()["StackFrame"]}
    chain = []
    while leaf:
        chain.append(rows[leaf]["file_location_id"])
        leaf = rows[leaf]["parent_frame_id"]
    assert len(chain) == 3
    assert len(set(chain)) == 3


def test_stacks_with_common_callers_share_their_frames():
    registry = StackRegistry()
    registry.leaf((STEP, MAIN))
    registry.take_rows()
    registry.leaf((LAYER, STEP, MAIN))
    assert len(registry.take_rows()["StackFrame"]) == 1


def test_rows_are_handed_out_once_and_names_once():
    registry = StackRegistry()
    registry.leaf((STEP, MAIN))
    rows = registry.take_rows()
    assert [row["name"] for row in rows["StackFrameFileName"]] == ["t.py"]
    registry.leaf((STEP, MAIN))
    assert registry.take_rows() == {}


def test_no_stack_has_no_frame():
    assert StackRegistry().leaf(()) == ""


def test_files_are_listed_in_order_of_appearance():
    registry = StackRegistry()
    registry.leaf((LAYER, MAIN))
    assert registry.files == ("t.py", "m.py")
