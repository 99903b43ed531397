import threading
import time

from neuron_monitor.api.guard import BlockedError, Guard, _Batch

LONG_S = 60.0


def test_results_and_errors_come_by_key():
    def fail():
        raise OSError(19, "gone")

    guard = Guard(LONG_S, time.monotonic_ns)
    outcomes = guard.run({"good": lambda: 1, "bad": fail, "other": lambda: 2})
    assert (outcomes["good"], outcomes["other"]) == (1, 2)
    assert isinstance(outcomes["bad"], OSError)


def test_a_call_that_hangs_blocks_neither_the_others_nor_the_caller():
    released = threading.Event()
    guard = Guard(0.05, time.monotonic_ns)
    calls = {0: lambda: "zero", 1: released.wait, 2: lambda: "two"}
    for _ in range(2):
        outcomes = guard.run(calls)
        # On a busy machine the others may be late too, and are called again.
        while (outcomes[0], outcomes[2]) != ("zero", "two"):
            outcomes = guard.run(calls)
        assert isinstance(outcomes[1], BlockedError)
    released.set()


def test_a_key_is_called_again_when_its_call_has_returned():
    released, ended = threading.Event(), threading.Event()

    def hang():
        released.wait()
        ended.set()

    guard = Guard(0.05, time.monotonic_ns)
    guard.run({0: hang})
    released.set()
    ended.wait(LONG_S)
    while guard._blocked and not next(iter(guard._blocked.values()))[0].has_ended:
        pass
    guard.timeout_s = LONG_S
    assert guard.run({0: lambda: "back"}) == {0: "back"}


def test_a_call_that_returned_just_in_time_is_not_given_up():
    given_up = []
    batch = _Batch([(0, lambda: None), (1, lambda: given_up.append(batch.give_up(0))), (2, lambda: None)])
    batch.run()
    assert given_up == [False]
    assert list(batch.outcomes) == [0, 1, 2]


def test_after_a_call_that_was_given_up_no_other_is_made():
    batch = _Batch([(0, lambda: batch.give_up(0)), (1, lambda: None)])
    batch.run()
    assert batch.outcomes == {0: True}
    assert batch.has_ended
