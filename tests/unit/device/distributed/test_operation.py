"""Operations are performed in the order of their issue."""

import threading

from neuron_tools.device.distributed.operation import Lane


def test_items_are_performed_in_order_whoever_performs_them():
    done, gate = [], threading.Event()

    def perform(item):
        if item == 0:
            gate.wait(5)
        done.append(item)

    lane = Lane(perform, "test")
    lane.submit(0, inline=False)
    lane.submit(1, inline=True)  # something is under way: it takes its turn
    finished = threading.Event()
    lane.submit(2, inline=False)
    gate.set()
    lane._perform = lambda item: (done.append(item), finished.set())
    lane.submit(3, inline=False)
    assert finished.wait(5)
    lane.close()
    assert done == sorted(done)


def test_what_the_caller_waits_for_is_performed_on_its_own_thread():
    threads = []
    lane = Lane(lambda item: threads.append(threading.current_thread()), "test")
    lane.submit(0, inline=True)
    assert threads == [threading.current_thread()]
