import threading
from multiprocessing import spawn

from neuron_tools.capture.rests import Rests, is_ended_by_others


def test_workers_of_ray_are_ended_by_others():
    worker = "/opt/venv/lib/python3.11/site-packages/ray/_private/workers/default_worker.py"
    assert is_ended_by_others(["python", worker, "--node-ip-address=127.0.0.1"])
    assert not is_ended_by_others(["python", "/home/me/default_worker.py"])


def test_spawned_processes_may_be_ended_by_others():
    command = spawn.get_command_line(pipe_handle=7, tracker_fd=8)
    assert is_ended_by_others(command)


def test_a_rest_is_told_once_when_no_record_comes_any_more():
    counts, told, quiet = iter([1, 2, 2, 2, 3, 3]), [], threading.Event()

    def count():
        number = next(counts, 3)
        if number == 3 and told[-1] == 3:
            quiet.set()
        return number

    rests = Rests(count, told.append, seconds=0.001)
    assert quiet.wait(60)
    rests.end()
    assert told == [2, 3]
