"""Python must not end while autograd's threads still run."""

import subprocess
import sys
import textwrap

from neuron_tools.device import shutdown


def add_thread(folder, number, name, state):
    (folder / str(number)).mkdir(exist_ok=True)
    (folder / str(number) / "stat").write_text(f"{number} ({name}) {state} 1 2 3\n")


def test_sleeping_autograd_threads_are_at_rest(tmp_path):
    add_thread(tmp_path, 1, "python", "R")
    add_thread(tmp_path, 2, "pt_autograd_0", "S")
    assert shutdown.wait_for_autograd(tmp_path, longest_seconds=5)


def test_a_running_autograd_thread_is_waited_for(tmp_path):
    add_thread(tmp_path, 2, "pt_autograd_0", "S")
    add_thread(tmp_path, 3, "pt_autograd_1", "R")
    assert not shutdown.wait_for_autograd(tmp_path, longest_seconds=0.01)


def test_without_autograd_threads_there_is_nothing_to_wait_for(tmp_path):
    add_thread(tmp_path, 1, "python (odd) name", "R")
    assert shutdown.wait_for_autograd(tmp_path, longest_seconds=0)
    assert shutdown.wait_for_autograd(tmp_path / "missing", longest_seconds=0)


def test_a_script_that_ends_right_after_backward_ends_well():
    program = """
        import torch
        torch.nn.Linear(4, 2, device="neuron")(torch.ones(3, 4, device="neuron")).sum().backward()
    """
    for _ in range(2):
        result = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
        )
        assert (result.returncode, result.stderr) == (0, "")
