"""The capture log: what is in it, that it is the same twice, and that it survives what goes wrong."""

import _thread
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import torch

from neuron_tools.device import native
from neuron_tools.records.capture_log import RECORD_DTYPE, Padding, RecordKind
from tests.integration.device.recording import record


def train_step():
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 2, device="neuron")
    loss = layer(torch.ones(3, 4).to("neuron")).relu().sum()
    loss.backward()
    return loss.item()


def test_an_operation_has_its_name_line_executable_and_times(tmp_path):
    def program():
        x = torch.ones(4, device="neuron")
        x + x
        x + x

    line = program.__code__.co_firstlineno
    log = record(program, tmp_path / "log", duration_ns=500)
    first, second = log.of(RecordKind.OPERATION, "aten::add.Tensor")
    assert [log.line(first), log.line(second)] == [line + 2, line + 3]
    assert first["executable"] == second["executable"] > 0
    assert first["device_end_ns"] - first["device_start_ns"] == 500
    assert first["device_start_ns"] >= first["host_end_ns"] == first["host_start_ns"] + 10_000
    assert second["device_start_ns"] >= first["device_end_ns"]


def test_a_signature_is_asked_for_once_and_tells_everything_but_values(tmp_path):
    def program():
        x = torch.ones(2, 3, device="neuron")
        for _ in range(3):
            torch.add(x, x.t().contiguous().t(), alpha=2)
        torch.add(x, x, alpha=2)
        torch.add(x, 5)
        torch.cat([x, x]).sum(0, dtype=torch.float64)

    log = record(program, tmp_path / "log")
    adds = [arguments for name, arguments in log.signatures if name == "aten::add.Tensor"]
    assert adds == [
        (("tensor", "float32", (2, 3), (3, 1), 0, True), ("tensor", "float32", (2, 3), (1, 2), 1, True), 2),
        (("tensor", "float32", (2, 3), (3, 1), 0, True), ("tensor", "float32", (2, 3), (3, 1), 0, True), 2),
        (("tensor", "float32", (2, 3), (3, 1), 0, True), ("number_tensor", "int64"), 1),
    ]
    (cat,) = [arguments for name, arguments in log.signatures if name == "aten::cat"]
    tensor = ("tensor", "float32", (2, 3), (3, 1), 0, True)
    assert cat == (("list", (tensor, tensor)), 0)
    (total,) = [arguments for name, arguments in log.signatures if name == "aten::sum.dim_IntList"]
    assert total[1:] == (("list", (0,)), False, ("dtype", "float64"))


def test_a_number_that_is_nothing_special_makes_no_new_signature(tmp_path):
    def program():
        x, y = torch.ones(2, device="neuron"), torch.ones(2, device="neuron")
        for rate in (0.1, 0.01, 0.25, 0.6, 3.3, 1e9, -0.1):
            torch.ops.aten.leaky_relu(x, rate)
        for special in (0.0, 0.5, 1.0, 16.0, float("inf")):
            torch.ops.aten.leaky_relu(x, special)
        for rates in ([0.1, 0.2], [0.3, 0.4]):
            torch._foreach_mul([x, y], rates)

    log = record(program, tmp_path / "log")
    asked = [arguments[1] for name, arguments in log.signatures if name == "aten::leaky_relu"]
    assert asked == [0.1, 0.6, 3.3, -0.1, 0.0, 0.5, 1.0, 16.0, float("inf")]
    assert [name for name, _ in log.signatures].count("aten::_foreach_mul.ScalarList") == 1
    assert len(log.of(RecordKind.OPERATION, "aten::leaky_relu")) == 12


def test_another_default_type_is_another_signature(tmp_path):
    """Quotients and roots of integers have that type, and take the time of it."""

    def program():
        x = torch.arange(1, 4, device="neuron")
        for default in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(default)
            x.sqrt()

    log = record(program, tmp_path / "log")
    assert [name for name, _ in log.signatures].count("aten::sqrt") == 2
    assert len(set(log.of(RecordKind.OPERATION, "aten::sqrt")["executable"])) == 2


def test_backward_operations_carry_their_forward_operation(tmp_path):
    log = record(train_step, tmp_path / "log")
    (forward,) = log.of(RecordKind.OPERATION, "aten::addmm")
    gradients = log.of(RecordKind.OPERATION, "aten::mm")
    assert forward["sequence"] >= 0
    assert len(gradients) > 0
    assert set(gradients["forward_sequence"]) == {forward["sequence"]}
    assert set(gradients["forward_thread"]) == {forward["thread"]}
    assert set(gradients["thread"]) != {forward["thread"]}
    assert set(gradients["stack"]) == {0}


def test_operations_outside_autograd_have_no_sequence(tmp_path):
    def program():
        weight = torch.ones(2, device="neuron", requires_grad=True)
        weight * 2
        with torch.no_grad():
            weight * 3

    log = record(program, tmp_path / "log")
    tracked, untracked = log.of(RecordKind.OPERATION, "aten::mul.Tensor")
    assert tracked["sequence"] >= 0
    assert untracked["sequence"] == -1


def test_views_and_empty_tensors_are_no_device_work(tmp_path):
    def program():
        torch.empty(2, 3, device="neuron").t()[0].view(2).detach()

    log = record(program, tmp_path / "log")
    assert set(log.records["kind"]) == {RecordKind.ALLOCATE, RecordKind.FREE}


def test_every_allocation_is_freed_and_bytes_agree(tmp_path):
    before = torch.ones(8, device="neuron")
    log = record(lambda: [train_step(), before.add_(1)], tmp_path / "log")
    made, freed = log.of(RecordKind.ALLOCATE), log.of(RecordKind.FREE)
    assert len(set(made["address"])) == len(made)
    assert set(freed["address"]) <= set(made["address"])
    sizes = dict(zip(made["address"], made["bytes"], strict=True))
    assert all(sizes[row["address"]] == row["bytes"] for row in freed)
    assert 32 in {size for address, size in sizes.items() if address not in set(freed["address"])}


def test_copies_and_waits_are_recorded_with_their_bytes(tmp_path):
    def program():
        x = torch.ones(250).to("neuron")
        x.cpu()
        x[0].item()
        torch.neuron.synchronize()

    log = record(program, tmp_path / "log")
    assert log.of(RecordKind.COPY_TO_DEVICE)["bytes"].tolist() == [1000]
    assert log.of(RecordKind.COPY_TO_HOST)["bytes"].tolist() == [1000, 4]
    (copy,) = log.of(RecordKind.COPY_TO_DEVICE)
    assert copy["device_end_ns"] - copy["device_start_ns"] == 1500
    (wait,) = log.of(RecordKind.SYNCHRONIZE)
    assert wait["host_end_ns"] >= log.records["device_end_ns"].max()


def padded(*lengths, most=32, kind=torch.long, features=()):
    """Rows of ones that are filled up with zeros."""
    batch = torch.zeros(len(lengths), most, *features, dtype=kind)
    for row, length in enumerate(lengths):
        batch[row, :length] = torch.arange(1, length + 1).reshape(-1, *(1 for _ in features))
    return batch


@pytest.mark.parametrize(
    ("batch", "padding"),
    [
        (padded(5, 9, 20), Padding(3, 32, 20, 12)),
        (padded(5, 32), Padding(2, 32, 32, 19)),
        (padded(4, 4, kind=torch.float32, features=(8,)), Padding(2, 32, 4, 4)),
        (padded(32, 32), None),
        (padded(0, 0), None),
        (padded(5, 9, kind=torch.float32), None),
        (padded(2, 3, most=8), None),
    ],
    ids=["ids", "one is whole", "features", "full", "empty", "numbers", "short"],
)
def test_a_copy_tells_how_far_its_sequences_are_padded(tmp_path, batch, padding):
    log = record(lambda: batch.to("neuron"), tmp_path / "log")
    (copy,) = log.of(RecordKind.COPY_TO_DEVICE)
    assert Padding.unpacked(int(copy["address"])) == padding


def test_modules_optimizer_and_ranges_are_kept(tmp_path):
    def program():
        x = torch.ones(2, device="neuron")
        assert native.set_module(7) == 0
        native.set_optimizer(True)
        x + 1
        native.set_optimizer(False)
        assert native.set_module(0) == 7
        native.record_range(native.intern_name("epoch"), 5, 9, RecordKind.RANGE)
        native.run_graph(42, 3_000, native.intern_name("graph 1"))

    log = record(program, tmp_path / "log")
    (add,) = log.of(RecordKind.OPERATION, "aten::add.Tensor")
    assert (add["module"], add["flags"] & 1) == (7, 1)
    (epoch,) = log.of(RecordKind.RANGE, "epoch")
    assert (epoch["host_start_ns"], epoch["host_end_ns"], epoch["module"]) == (5, 9, 0)
    (graph,) = log.of(RecordKind.GRAPH, "graph 1")
    assert graph["executable"] == 42
    assert graph["device_end_ns"] - graph["device_start_ns"] == 3_000
    assert graph["device_start_ns"] >= add["device_end_ns"]


def test_flags_of_the_cost_are_kept(tmp_path):
    log = record(
        lambda: torch.ones(2, device="neuron").exp(),
        tmp_path / "log",
        cost=lambda name, _: (5, 10, 2) if name == "aten::exp" else (6, 10, 0),
    )
    assert log.of(RecordKind.OPERATION, "aten::exp")["flags"].tolist() == [2]
    assert log.of(RecordKind.OPERATION, "aten::fill_.Scalar")["flags"].tolist() == [0]


def test_two_recordings_under_the_fixed_clock_are_identical(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent(
            """
            import pathlib, sys
            from tests.integration.device import test_recording
            from tests.integration.device.recording import record
            log = record(test_recording.train_step, pathlib.Path(sys.argv[1]))
            print(log.stacks, log.names, log.signatures)
            """
        )
    )
    outputs = [
        subprocess.run(
            [sys.executable, str(script), str(tmp_path / name)],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": os.getcwd()},
        ).stdout
        for name in ("first", "second")
    ]
    assert outputs[0] == outputs[1]
    first, second = (np.fromfile(tmp_path / name, RECORD_DTYPE) for name in ("first", "second"))
    assert len(first) > 10
    # addresses number allocations, which other code in the two processes makes too
    assert np.array_equal(first, second)


def test_a_killed_process_leaves_its_records(tmp_path):
    program = f"""
        import os, signal, torch
        from neuron_tools.device import native
        log = {str(tmp_path / "log")!r}
        native.start_recording(log, lambda *_: (1, 1, 0), lambda *_: None, lambda *_: None)
        x = torch.ones(2, device="neuron")
        for _ in range(50):
            x + x
        print(native.record_count(), flush=True)
        input()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    made = int(child.stdout.readline())
    # The records reach the file without the program doing anything more.
    pause = threading.Event()
    for _ in range(1200):
        if (tmp_path / "log").stat().st_size >= made * RECORD_DTYPE.itemsize:
            break
        pause.wait(0.05)
    child.communicate("\n")
    assert child.returncode == -9
    assert len(np.fromfile(tmp_path / "log", RECORD_DTYPE)) >= made > 100


def test_a_full_disk_ends_the_log_but_not_the_program():
    native.start_recording("/dev/full", lambda *_: (1, 1, 0), lambda *_: None, lambda *_: None)
    try:
        x = torch.ones(2, device="neuron") + 1
        native.flush()
        assert native.recording_error() == "No space left on device"
        assert (x + 1).tolist() == [3, 3]
    finally:
        native.stop_recording()
    assert native.recording_error() == "No space left on device"


def test_a_failing_cost_callback_warns_once_and_takes_no_time(tmp_path):
    def broken(name, arguments):
        raise ValueError("no model")

    x = torch.ones(2, device="neuron")
    with pytest.warns(RuntimeWarning, match="no model") as warned:
        log = record(lambda: [x + 1, x * 2], tmp_path / "log", cost=broken)
    assert len([entry for entry in warned if "no model" in str(entry.message)]) == 1
    operations = log.of(RecordKind.OPERATION)
    assert len(operations) == 2
    assert set(operations["device_end_ns"] - operations["device_start_ns"]) == {0}


def test_a_second_recording_at_the_same_time_is_refused(tmp_path):
    def program():
        with pytest.raises(RuntimeError, match="stop it first"):
            native.start_recording(str(tmp_path / "other"), None, None, None)

    record(program, tmp_path / "log")


def test_a_log_that_cannot_be_made_is_named(tmp_path):
    with pytest.raises(RuntimeError, match=r"missing/log cannot be written"):
        native.start_recording(str(tmp_path / "missing" / "log"), None, None, None)
    assert not native.is_timing()


def test_a_thread_that_runs_only_our_own_code_has_no_line(tmp_path):
    """As that of a compiled graph's backward pass: no line of ours stands for the user's."""

    def program():
        x, done = torch.ones(4, device="neuron"), threading.Event()
        ours = compile("x + x\ndone.set()", native.__file__, "exec")
        # A thread of `threading` has frames of that module, too.
        _thread.start_new_thread(exec, (ours, {"x": x, "done": done}))
        assert done.wait(60)

    log = record(program, tmp_path / "log")
    (added,) = log.of(RecordKind.OPERATION, "aten::add.Tensor")
    assert added["stack"] == 0


def test_frames_of_pytorch_are_left_out_and_stacks_are_told_once(tmp_path):
    layer = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()).to("neuron")
    x = torch.ones(1, 2, device="neuron")

    def program():
        for _ in range(3):
            layer(x)

    log = record(program, tmp_path / "log")
    (stack,) = {int(row["stack"]) for row in log.of(RecordKind.OPERATION)}
    functions = [function for _, _, function in log.stacks[stack]]
    assert functions[0].endswith("program")
    assert not [file for file, _, _ in log.stacks[stack] if "/torch/" in file or file.startswith("<frozen")]


def test_a_forked_child_does_not_write_into_the_log(tmp_path):
    def program():
        x = torch.ones(2, device="neuron")
        child = os.fork()
        if child == 0:
            x.exp()
            native.abandon_recording()
            os._exit(0 if not native.is_recording() else 3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        x.log()

    log = record(program, tmp_path / "log")
    assert len(log.of(RecordKind.OPERATION, "aten::log")) == 1
    assert len(log.of(RecordKind.OPERATION, "aten::exp")) == 0


def test_an_abandoned_recording_ends_and_a_new_one_can_start(tmp_path):
    log = tmp_path / "abandoned"
    native.start_recording(str(log), lambda *_: (1, 1, 0), lambda *_: None, lambda *_: None)
    native.abandon_recording()
    assert not native.is_recording()
    assert len(record(lambda: torch.ones(1, device="neuron"), tmp_path / "next").records) > 0


def test_threads_are_numbered_and_keep_their_own_module(tmp_path):
    x = torch.ones(2, device="neuron")

    def elsewhere():
        native.set_module(3)
        x * 2

    def program():
        x + 1
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()

    log = record(program, tmp_path / "log")
    (here,) = log.of(RecordKind.OPERATION, "aten::add.Tensor")
    (there,) = log.of(RecordKind.OPERATION, "aten::mul.Tensor")
    assert (here["module"], there["module"]) == (0, 3)
    assert here["thread"] != there["thread"]


def test_callbacks_see_pytorch_as_at_top_level(tmp_path):
    seen = []

    def cost(name, arguments):
        x = torch.ones(2, requires_grad=True)
        (x * 2).sum().backward()
        seen.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled(), x.grad.tolist()))
        return 1, 1, 0

    def program():
        x = torch.ones(2, device="neuron")
        with torch.inference_mode():
            x.exp()
            torch.ones(2, device="neuron").log().tolist()

    record(program, tmp_path / "log", cost=cost)
    assert len(seen) >= 3
    assert set(map(str, seen)) == {"(True, False, [2.0, 2.0])"}


def test_many_threads_ask_once_for_each_signature(tmp_path):
    barrier = threading.Barrier(4)

    def work(index):
        barrier.wait()
        for size in range(1, 40):
            x = torch.ones(size, device=f"neuron:{index % 2}", requires_grad=True)
            (x * 2 + 1).sum().backward()

    def cost(name, arguments):
        threading.Event().wait(0)  # gives the GIL away
        return 1, 100, 0

    def program():
        threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    log = record(program, tmp_path / "log", cost=cost)
    assert len(log.signatures) == len(set(log.signatures))
    assert len(log.of(RecordKind.OPERATION, "aten::mul.Tensor")) >= 4 * 39


def test_compute_of_one_core_never_overlaps(tmp_path):
    def program():
        x = torch.ones(4, device="neuron")
        for _ in range(5):
            with torch.neuron.stream(torch.neuron.Stream()):
                x.exp()

    operations = record(program, tmp_path / "log").of(RecordKind.OPERATION)
    assert len(set(operations["stream"])) > 1
    ordered = np.sort(operations, order="device_start_ns")
    assert (ordered["device_start_ns"][1:] >= ordered["device_end_ns"][:-1]).all()


def test_an_interrupt_in_a_callback_reaches_the_program():
    def interrupted(name, arguments):
        raise KeyboardInterrupt

    def program():
        torch.ones(3, device="neuron").exp().tolist()
        for _ in range(1000):
            pass

    native.start_timing(interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            program()
    finally:
        native.stop_recording()


def test_a_recording_that_is_never_stopped_is_written_at_exit(tmp_path):
    program = f"""
        import torch
        from neuron_tools.device import native
        log = {str(tmp_path / "log")!r}
        native.start_recording(log, lambda *_: (1, 1, 0), lambda *_: None, lambda *_: None)
        x = torch.ones(3, device="neuron") + 1
        print(native.record_count())
    """
    made = subprocess.check_output([sys.executable, "-c", textwrap.dedent(program)])
    assert len(np.fromfile(tmp_path / "log", RECORD_DTYPE)) >= int(made) > 0
