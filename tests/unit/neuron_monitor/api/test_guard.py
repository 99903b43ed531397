import threading
import time

from neuron_monitor.api.guard import BlockedError, Guard


def test_results_and_errors_come_by_key():
    def fail():
        raise OSError(19, "gone")

    guard = Guard(5.0, time.monotonic_ns)
    outcomes = guard.run({"good": lambda: 1, "bad": fail, "other": lambda: 2})
    assert (outcomes["good"], outcomes["other"]) == (1, 2)
    assert isinstance(outcomes["bad"], OSError)


def test_a_call_that_hangs_blocks_neither_the_others_nor_the_caller():
    released = threading.Event()
    guard = Guard(0.05, time.monotonic_ns)
    calls = {0: lambda: "zero", 1: released.wait, 2: lambda: "two"}
    outcomes = guard.run(calls)
    assert (outcomes[0], outcomes[2]) == ("zero", "two")
    assert isinstance(outcomes[1], BlockedError)
    again = guard.run(calls)
    assert isinstance(again[1], BlockedError)
    assert (again[0], again[2]) == ("zero", "two")
    released.set()


def test_a_key_is_called_again_when_its_call_has_returned():
    released, ended = threading.Event(), threading.Event()

    def hang():
        released.wait()
        ended.set()

    guard = Guard(0.05, time.monotonic_ns)
    guard.run({0: hang})
    released.set()
    ended.wait(5)
    while guard._blocked and not next(iter(guard._blocked.values()))[0].ended.is_set():
        pass
    assert guard.run({0: lambda: "back"}) == {0: "back"}
