from __future__ import annotations

import threading

from neuron_tools.device.host.numbering import Numbering


def test_each_key_has_one_number_and_is_told_once() -> None:
    told: list[tuple[int, str]] = []
    numbers: Numbering[str] = Numbering(lambda number, key: told.append((number, key)))
    assert [numbers.number(key) for key in ("a", "b", "a")] == [1, 2, 1]
    assert told == [(1, "a"), (2, "b")]


def test_threads_get_the_same_numbers() -> None:
    told: list[int] = []
    numbers: Numbering[int] = Numbering(lambda number, _: told.append(number))
    found: list[list[int]] = []

    def ask() -> None:
        found.append([numbers.number(key) for key in range(200)])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [found[0]] * 4
    assert sorted(told) == list(range(1, 201))
