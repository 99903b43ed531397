"""Threads that wait for results at once: the one whose results come first goes on first."""

import threading

from neuron_tools.frontends.torch_trace.clients import Clients


def test_a_thread_alone_never_waits():
    clients = Clients(patience_s=60)
    assert not clients.enter()
    clients.wait(5)


def test_results_come_in_their_order_whoever_asked_first():
    clients = Clients(patience_s=60)
    ready, came = threading.Barrier(3), []

    def client(end_ns):
        clients.enter()
        ready.wait()
        for end in (end_ns, 10 * end_ns):
            clients.wait(end)
            came.append(end)
        clients.leave()

    threads = [threading.Thread(target=client, args=(end,)) for end in (3, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert came == [1, 2, 3, 10, 20, 30]


def test_a_thread_that_does_something_else_is_not_waited_for():
    clients, done = Clients(patience_s=0.01), threading.Event()

    def elsewhere():
        clients.enter()
        clients.leave()
        done.wait()

    other = threading.Thread(target=elsewhere)
    other.start()
    clients.enter()
    clients.wait(1)
    done.set()
    other.join()
