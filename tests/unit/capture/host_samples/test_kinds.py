import pytest

from neuron_tools.capture.host_samples.kinds import activity_of
from neuron_tools.capture.host_samples.reading import SampledStack
from neuron_tools.records.program import Frame

TORCH = "/site-packages/torch"
FETCH = Frame(f"{TORCH}/utils/data/_utils/fetch.py", 50, "_MapDatasetFetcher.fetch")
TRACING = Frame(f"{TORCH}/_dynamo/output_graph.py", 9)
LOOP = Frame("train.py", 3, "main")


@pytest.mark.parametrize(
    ("inner", "kind", "detail"),
    [
        ([Frame("data.py", 9, "Data.__getitem__"), FETCH], "data_loading", ""),
        ([Frame(f"{TORCH}/utils/data/_utils/collate.py", 9)], "data_loading", "putting a batch together"),
        ([Frame(f"{TORCH}/_dynamo/convert_frame.py", 9)], "tracing", "torch.compile traces a function"),
        ([Frame(f"{TORCH}/_dynamo/eval_frame.py", 9)], "python", ""),
        ([Frame("/x/neuron_tools/compiler/a.py", 1), TRACING], "compilation", ""),
        ([Frame("/x/neuron_tools/frontends/torch_compile/backend.py", 1)], "compilation", ""),
        ([Frame("/x/neuron_tools/frontends/torch_compile/compiled_graph.py", 1)], "python", ""),
        ([Frame(f"{TORCH}/_functorch/_aot_autograd/subclass_codegen.py:codegen(x)", 2)], "python", ""),
        ([Frame("/usr/lib/python3.11/logging/__init__.py", 9)], "input_output", "logging"),
        ([Frame(f"{TORCH}/serialization.py", 9)], "input_output", "a checkpoint"),
        ([Frame(f"{TORCH}/optim/sgd.py", 9)], "optimizer", ""),
        ([Frame("/usr/lib/python3.11/threading.py", 9)], "lock", ""),
        ([Frame("model.py", 9)], "python", ""),
    ],
)  # fmt: skip
def test_frames_tell_what_a_thread_does(inner, kind, detail):
    found = activity_of(SampledStack((*inner, LOOP)), blocked=False)
    assert (found.kind, found.detail) == (kind, detail)


@pytest.mark.parametrize(
    ("line", "call", "kind"),
    [
        ("print('a', 1)", "print('a', 1)", "input_output"),
        ("kept = pickle.dumps(state)", "pickle.dumps(state)", "pickling"),
        ("json.dumps(state)", "json.dumps(state)", "python"),
        ("' '.join(words)", "' '.join(words)", "python"),
        ("lock.acquire()", "lock.acquire()", "lock"),
        ("loss.item() + 1", "loss.item()", "copy"),
        ("file.write(text)", "file.write(text)", "input_output"),
    ],
)
def test_the_called_function_tells_it_where_it_has_no_frame(tmp_path, line, call, kind):
    script = tmp_path / f"{abs(hash(line))}.py"
    script.write_text(f"{line}\n")
    begin = line.index(call)
    stack = SampledStack((Frame(str(script), 1, "main"),), (1, 1, begin, begin + len(call)), "CALL")
    assert activity_of(stack, blocked=False).kind == kind


def test_a_blocked_thread_waits_for_a_lock_or_for_python():
    here = (Frame("train.py", 1, "main"),)
    assert activity_of(SampledStack(here, operation="BEFORE_WITH"), blocked=True).kind == "lock"
    jumping = SampledStack(here, operation="JUMP_BACKWARD")
    assert activity_of(jumping, blocked=True).detail == "Python's global lock"
    assert activity_of(SampledStack(here, operation="BEFORE_WITH"), blocked=False).kind == "python"


def test_a_thread_that_frees_a_tensor_waits_for_nothing():
    storing = SampledStack((Frame("train.py", 1, "main"),), operation="STORE_FAST")
    assert activity_of(storing, blocked=True).kind == "python"
