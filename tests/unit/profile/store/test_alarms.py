import os
import threading

import pytest

from neuron_tools.profile.store.alarms import Alarms

PATIENCE_S = 120.0


def test_calls_are_made_in_the_order_of_their_times() -> None:
    alarms, made, done = Alarms(), [], threading.Event()
    alarms.after(3600, lambda: made.append("much later"))
    alarms.after(0.02, lambda: (made.append("later"), done.set()))
    alarms.after(0.0, lambda: made.append("now"))
    assert done.wait(PATIENCE_S)
    assert made == ["now", "later"]


def test_a_cancelled_call_is_not_made() -> None:
    alarms, made, done = Alarms(), [], threading.Event()
    alarms.after(0.01, lambda: made.append("cancelled")).cancel()
    alarms.after(0.02, done.set)
    assert done.wait(PATIENCE_S)
    assert made == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_forked_process_has_calls_of_its_own() -> None:
    alarms, done = Alarms(), threading.Event()
    alarms.after(3600, done.set)
    child = os.fork()
    if child == 0:
        in_child = threading.Event()
        alarms.after(0.0, in_child.set)
        os._exit(0 if in_child.wait(PATIENCE_S) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
