"""Work that is shared among threads comes back whole and in order, whoever did it."""

import threading

from neuron_tools.profile.timeline.helping_threads import FEWEST_ROWS, HelpingThreads


def test_results_come_in_order():
    helping = HelpingThreads()
    assert helping.run([lambda number=number: number for number in range(9)]) == list(range(9))
    assert helping.run([]) == []


def test_what_no_thread_takes_the_caller_does():
    helping, release = HelpingThreads(), threading.Event()
    busy = [helping._executor.submit(release.wait, 60) for _ in range(8)]
    caller = threading.get_ident()
    assert helping.run([threading.get_ident] * 3) == [caller] * 3
    release.set()
    assert all(one.result() for one in busy)


def test_little_work_is_not_shared():
    assert HelpingThreads().shares(FEWEST_ROWS - 1) == 1
