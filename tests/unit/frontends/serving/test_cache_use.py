"""Ranges of how many blocks of keys and values are held."""

from __future__ import annotations

import atexit

import pytest

from neuron_tools.frontends.serving import cache_use
from neuron_tools.frontends.serving.cache_use import CacheUseRange


@pytest.fixture
def told(monkeypatch):
    """What was begun (+) and ended (-), in order."""
    events = []

    class Recorded:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            events.append(f"+{self.name}")

        def __exit__(self, *error):
            events.append(f"-{self.name}")

    monkeypatch.setattr(cache_use, "record_function", Recorded)
    return events


def test_a_range_lasts_until_another_number_is_held(told):
    use = CacheUseRange()
    for blocks in ((1, 8), (1, 8), (2, 8)):
        use.hold(blocks)
    assert told == ["+kv_cache 1/8", "-kv_cache 1/8", "+kv_cache 2/8"]


def test_the_last_range_ends_with_the_process(told, monkeypatch):
    at_exit = []
    monkeypatch.setattr(atexit, "register", at_exit.append)
    CacheUseRange().hold((3, 8))
    for end in at_exit:
        end()
    assert told == ["+kv_cache 3/8", "-kv_cache 3/8"]
