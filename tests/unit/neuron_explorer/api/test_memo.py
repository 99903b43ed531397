from __future__ import annotations

from threading import Event, Thread

import pytest

from neuron_explorer.api.memo import Memo

PATIENCE_S = 120.0


class Key:
    """Stands for a profile: it can be referred to weakly."""


def test_a_result_is_computed_once_even_when_many_ask() -> None:
    memo, profile, started, go_on = Memo(), Key(), Event(), Event()
    computed: list[int] = []
    answers: list[int] = []

    def compute() -> int:
        started.set()
        go_on.wait(PATIENCE_S)
        computed.append(7)
        return 7

    threads = [Thread(target=lambda: answers.append(memo.get(profile, "key", compute))) for _ in range(3)]
    for thread in threads:
        thread.start()
    started.wait(PATIENCE_S)
    go_on.set()
    for thread in threads:
        thread.join()
    assert (answers, computed) == ([7, 7, 7], [7])


def test_an_error_is_not_kept() -> None:
    memo, profile = Memo(), Key()

    def fail() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        memo.get(profile, "key", fail)
    assert memo.get(profile, "key", lambda: 1) == 1


def test_profiles_and_keys_are_apart() -> None:
    memo, one, other = Memo(), Key(), Key()
    assert memo.get(one, "a", lambda: 1) == 1
    assert memo.get(one, "b", lambda: 2) == 2
    assert memo.get(other, "a", lambda: 3) == 3
    assert memo.get(one, "a", lambda: 4) == 1
