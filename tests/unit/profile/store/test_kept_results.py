import threading

import pytest

from neuron_tools.profile.store.kept_results import KeptResults

PATIENCE_S = 120.0


def test_a_result_is_made_once_also_for_those_who_ask_meanwhile() -> None:
    kept, made, goes_on = KeptResults(), [], threading.Event()

    def make() -> int:
        made.append(goes_on.wait(PATIENCE_S))
        return len(made)

    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(kept.get("key", make))) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert kept.known("key") is None
    goes_on.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert (found, len(made), kept.known("key")) == ([1, 1, 1], 1, 1)


def test_what_fails_is_tried_again() -> None:
    kept = KeptResults()
    with pytest.raises(ZeroDivisionError):
        kept.get("key", lambda: 1 // 0)
    assert kept.get("key", lambda: 2) == 2
    assert kept.get("other", lambda: 3) == 3
