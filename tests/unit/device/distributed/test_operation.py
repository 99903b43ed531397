"""Operations are performed in the order of their issue."""

import threading

from neuron_tools.device.distributed.operation import Lane


def test_items_are_performed_in_order_whoever_performs_them():
    done, gate, finished = [], threading.Event(), threading.Event()

    def perform(item):
        if item == 0:
            gate.wait(60)
        done.append(item)
        if item == 3:
            finished.set()

    lane = Lane(perform, "test")
    lane.submit(0, inline=False)
    lane.submit(1, inline=True)  # something is under way: it takes its turn
    lane.submit(2, inline=False)
    gate.set()
    lane.submit(3, inline=False)
    assert finished.wait(60)
    lane.close()
    assert done == [0, 1, 2, 3]


def test_what_the_caller_waits_for_is_performed_on_its_own_thread():
    threads = []
    lane = Lane(lambda item: threads.append(threading.current_thread()), "test")
    lane.submit(0, inline=True)
    assert threads == [threading.current_thread()]
