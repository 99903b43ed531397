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


def chain(registry, leaf):
    rows = registry.take_rows()
    names = {row["id"]: row["name"] for row in rows["StackFrameFunctionName"]}
    lines = {
        row["id"]: (names[str(row["function_name_id"])], row["line_number"])
        for row in rows["StackFrameFileLocation"]
    }
    frames = {row["id"]: row for row in rows["StackFrame"]}
    found = []
    while leaf:
        found.append(lines[str(frames[leaf]["file_location_id"])])
        leaf = frames[leaf]["parent_frame_id"]
    return found


def test_a_compiled_functions_stack_goes_on_where_it_was_called():
    registry = StackRegistry()
    graph = registry.leaf((LAYER, Frame("m.py", 9, "model")))
    call = registry.leaf((Frame("m.py", 8, "Net.model"), STEP, MAIN))
    joined = registry.continued(graph, call)
    assert chain(registry, joined) == [("forward", 5), ("model", 9), ("step", 20), ("main", 30)]


def test_a_function_that_was_broken_off_stands_on_a_stack_once():
    registry = StackRegistry()
    graph = registry.leaf((Frame("m.py", 9, "model"),))
    rest = Frame("m.py", 8, "Net.torch_dynamo_resume_in_model_at_8")
    joined = registry.continued(graph, registry.leaf((rest, Frame("m.py", 8, "Net.model"), MAIN)))
    assert chain(registry, joined) == [("model", 9), ("main", 30)]


def test_a_stack_with_all_its_callers_is_whole():
    registry = StackRegistry()
    whole = registry.leaf((LAYER, STEP, MAIN))
    assert registry.continued(whole, registry.leaf((Frame("t.py", 21, "step"), MAIN))) == registry.leaf(
        (LAYER, STEP, MAIN)
    )
    assert registry.continued("", registry.leaf((MAIN,))) == ""
