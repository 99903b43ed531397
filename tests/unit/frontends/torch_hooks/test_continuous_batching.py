"""Requests of transformers' continuous batching are told where it has what tells of them, else left alone."""

import sys
from types import ModuleType

import pytest

from neuron_tools.frontends.serving.requests import RequestRanges
from neuron_tools.frontends.torch_hooks import continuous_batching

PACKAGES = ("transformers", "transformers.generation", "transformers.generation.continuous_batching")


class RequestState:
    request_id = "a"

    def __init__(self):
        self.tokens = []

    def generated_len(self):
        return len(self.tokens)

    def update_and_check_completion(self, token):
        self.tokens.append(token)


class EarlierScheduler:
    """As in transformers 4.57, which schedules in another way."""

    def add_waiting_request(self, state):
        pass

    def finish_request(self, request_id, evict_from_cache=True):
        return evict_from_cache


class Scheduler(EarlierScheduler):
    def _schedule_request(self, state, token_budget=0):
        return token_budget


@pytest.fixture
def told(monkeypatch):
    """What is told of requests, in order."""
    calls = []
    for name in ("arrive", "take", "give", "finish"):
        monkeypatch.setattr(RequestRanges, name, lambda _, *values, name=name: calls.append((name, *values)))
    return calls


@pytest.fixture
def import_as(monkeypatch):
    """Puts such a scheduler where transformers has it; returns a class that a test may change."""

    def put(scheduler):
        for name in PACKAGES:
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        copies = [type("Scheduler", (scheduler,), {}), type("RequestState", (RequestState,), {})]
        for short, each in zip(("scheduler", "requests"), copies):
            module = ModuleType(f"{PACKAGES[-1]}.{short}")
            setattr(module, each.__name__, each)
            monkeypatch.setitem(sys.modules, module.__name__, module)
        return copies

    return put


def test_a_request_is_told_from_arrival_to_end_however_its_scheduler_is_called(told, import_as):
    scheduler, state = (each() for each in import_as(Scheduler))
    uninstall = continuous_batching.install()
    scheduler.add_waiting_request(state)
    assert scheduler._schedule_request(state, token_budget=3) == 3
    state.update_and_check_completion(7)
    assert scheduler.finish_request("a", evict_from_cache=False) is False
    uninstall()
    scheduler.add_waiting_request(state)
    assert told == [("arrive", "a"), ("take", ["a"]), ("give", "a", 1), ("finish", "a")]


def test_an_earlier_transformers_is_left_alone(told, import_as):
    scheduler, _ = import_as(EarlierScheduler)
    continuous_batching.install()()
    scheduler().finish_request("a", evict_from_cache=False)
    assert "finish_request" not in vars(scheduler)
    assert told == []
