"""Calls that profilers do not see."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from neuron_tools.device import native


@contextmanager
def profiled() -> Iterator[list[str]]:
    seen: list[str] = []
    sys.setprofile(lambda frame, event, _: seen.append(frame.f_code.co_name) if event == "call" else None)
    try:
        yield seen
    finally:
        sys.setprofile(None)


class Owner:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def work(self, value: int = 1, *, fail: bool = False) -> int:
        """Adds."""
        self.log.append("work")
        if fail:
            raise ValueError("on purpose")
        return value + 1


def before(owner: Owner) -> str:
    owner.log.append("before")
    return "state"


def after(owner: Owner, state: str) -> None:
    owner.log.append(f"after {state}")


@pytest.fixture
def wrapped(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    monkeypatch.setattr(Owner, "work", native.around(Owner.work, before, after))
    return Owner.work


def test_a_method_is_called_as_before_with_something_around_it(wrapped: Callable[..., int]) -> None:
    owner = Owner([])
    assert (owner.work(), owner.work(2), wrapped(owner, value=3)) == (2, 3, 4)
    assert owner.log == ["before", "work", "after state"] * 3
    assert (wrapped.__name__, wrapped.__doc__) == ("work", "Adds.")


def test_what_the_method_raises_is_raised_and_the_end_is_told(wrapped: Callable[..., int]) -> None:
    owner = Owner([])
    with pytest.raises(ValueError, match="on purpose"):
        owner.work(fail=True)
    assert owner.log == ["before", "work", "after state"]


def test_what_is_raised_before_keeps_the_method_from_running() -> None:
    owner = Owner([])

    def refuse(owner: Owner) -> None:
        raise RuntimeError("refused")

    with pytest.raises(RuntimeError, match="refused"):
        native.around(Owner.work, refuse, after)(owner)
    assert owner.log == []


def test_what_is_raised_after_is_raised_where_the_method_went_well() -> None:
    def fail(owner: Owner, state: None) -> None:
        raise RuntimeError("afterwards")

    with pytest.raises(RuntimeError, match="afterwards"):
        native.around(Owner.work, None, fail)(Owner([]))
    with pytest.raises(ValueError, match="on purpose"):
        native.around(Owner.work, None, fail)(Owner([]), fail=True)


def test_without_arguments_the_method_itself_complains(wrapped: Callable[..., int]) -> None:
    with pytest.raises(TypeError, match="self"):
        wrapped()


def test_a_profile_shows_the_method_once_and_nothing_around_it(wrapped: Callable[..., int]) -> None:
    owner = Owner([])
    with profiled() as seen:
        owner.work()
    assert [name for name in seen if name not in ("__exit__", "profiled")] == ["work"]


def test_a_profile_does_not_show_an_unseen_call_but_what_comes_next() -> None:
    def hidden() -> int:
        return 1

    def shown() -> int:
        return 2

    call = native.unseen(hidden)
    with profiled() as seen:
        assert (call(), shown()) == (1, 2)
    assert [name for name in seen if name not in ("__exit__", "profiled")] == ["shown"]


def test_an_unseen_call_passes_exceptions_on() -> None:
    with pytest.raises(KeyError):
        native.unseen({}.__getitem__)("absent")
    with pytest.raises(TypeError, match="takes a callable"):
        native.unseen(3)  # type: ignore[type-var]
