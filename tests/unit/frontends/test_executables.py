"""Who records what runs: the capture's provider, but for threads that asked for none."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from neuron_tools.frontends import executables


@pytest.fixture
def provider():
    installed = object()
    uninstall = executables.install(installed)
    yield installed
    uninstall()


def test_threads_that_pause_at_once_leave_the_provider_where_it_was(provider):
    inside, leaving = threading.Barrier(2), threading.Event()

    def pause(is_last):
        with executables.without_provider():
            inside.wait()
            seen = executables.current()
            if is_last:
                leaving.wait()
        leaving.set()
        return seen

    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(pause, (False, True))] == [None, None]
    assert executables.current() is provider


def test_another_thread_is_recorded_meanwhile(provider):
    with executables.without_provider(), ThreadPoolExecutor(1) as threads:
        assert threads.submit(executables.current).result() is provider


def test_pausing_twice_ends_with_the_outer_block(provider):
    with executables.without_provider():
        with executables.without_provider():
            pass
        assert executables.current() is None
    assert executables.current() is provider
