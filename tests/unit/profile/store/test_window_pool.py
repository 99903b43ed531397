"""Windows are prepared in any order and written in that in which they were given."""

import threading

import pytest

from neuron_tools.profile.store.window_pool import Chain, WindowPool


def test_what_is_ready_early_is_written_in_its_turn():
    pool, chain, written, second_is_done = WindowPool(), Chain(), [], threading.Event()

    def slow(_):
        assert second_is_done.wait(60)
        return "first"

    def fast(_):
        return "second"

    pool.submit(chain, slow, written.append)
    other = Chain()
    pool.submit(chain, fast, written.append)
    pool.submit(other, lambda _: second_is_done.set(), lambda _: None)  # no thread waits for the slow one
    pool.drain()
    pool.close()
    assert written == ["first", "second"]


@pytest.mark.parametrize("fails", ["prepare", "write"])
def test_nothing_is_written_behind_what_failed(fails):
    pool, chain, written, may_fail = WindowPool(), Chain(), [], threading.Event()

    def broken(_):
        assert may_fail.wait(60)
        raise ValueError("broken")

    pool.submit(chain, lambda _: 0, written.append)
    if fails == "prepare":
        pool.submit(chain, broken, written.append)
    else:
        pool.submit(chain, lambda _: 1, broken)
    pool.submit(chain, lambda _: 2, written.append)
    may_fail.set()
    with pytest.raises(ValueError, match="broken"):
        pool.drain()
    pool.close()
    assert written == [0]
