"""Clocks of different machines are compared through messages, to within half a round trip."""

import queue
import threading

import torch

from neuron_tools.device.distributed.host_clocks import measure_offset
from neuron_tools.device.distributed.peers import Peer


class Done:
    def __init__(self, act=lambda: None):
        self.wait = act


class Exchange:
    """Stands in for gloo among threads of one process."""

    def __init__(self, size):
        self.boxes = {(a, b): queue.Queue() for a in range(size) for b in range(size)}
        self.gathered, self.barrier = [None] * size, threading.Barrier(size)

    def group(self, rank):
        exchange = self

        class Group:
            def send(self, tensors, other, tag):
                exchange.boxes[rank, other].put(tensors[0].clone())
                return Done()

            def recv(self, tensors, other, tag):
                return Done(lambda: tensors[0].copy_(exchange.boxes[other, rank].get(timeout=60)))

            def allgather(self, outputs, inputs):
                exchange.gathered[rank] = inputs[0].clone()

                def finish():
                    exchange.barrier.wait(60)
                    for target, source in zip(outputs[0], exchange.gathered):
                        target.copy_(source)

                return Done(finish)

        return Group()


def offsets(boots, ahead_ns):
    """What each rank finds, whose machine's clock is so far ahead; reading a clock takes 100 ns."""
    exchange, found, ticks = Exchange(len(boots)), {}, [0]
    lock = threading.Lock()
    peers = [Peer(rank, 1, 0, "host", boot) for rank, boot in enumerate(boots)]

    def clock(rank):
        def now():
            with lock:
                ticks[0] += 100
                return ticks[0] + ahead_ns[rank]

        return now

    def measure(rank):
        found[rank] = measure_offset(exchange.group(rank), rank, peers, clock(rank))

    threads = [threading.Thread(target=measure, args=(rank,)) for rank in range(len(boots))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return found


def test_one_machine_has_one_clock():
    assert {each.offset_ns for each in offsets(["a", "a"], [0, 0]).values()} == {0}


def test_ranks_of_a_machine_share_what_its_first_rank_found():
    found = offsets(["a", "b", "b"], [0, 5_000_000, 5_000_000])
    assert found[0].offset_ns == 0
    assert found[1] == found[2]
    assert abs(found[1].offset_ns - 5_000_000) <= found[1].uncertainty_ns


def test_a_machine_that_is_behind_has_a_negative_offset():
    assert offsets(["a", "b"], [0, -7_000_000])[1].offset_ns < -6_900_000


def test_rooms_are_on_the_host_whatever_the_default_device():
    with torch.device("meta"):
        assert offsets(["a", "b"], [0, 0])[1].uncertainty_ns >= 0
