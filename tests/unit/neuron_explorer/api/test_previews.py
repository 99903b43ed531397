"""Of edits that come while the captured costs are computed, only the last is simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from neuron_explorer.api.previews import Previews
from neuron_explorer.library import ProfileLibrary
from neuron_tools.profile.reader import Profile, open_profile
from tests.unit.neuron_profile.tiny_profile import make_profile, tiny_tables

__all__ = ["make_profile", "tiny_tables"]


class Process:
    """Answers about the captured text when it is told to, about others at once."""

    def __init__(self) -> None:
        self.texts: list[str | None] = []
        self.asked, self.goes_on = Event(), Event()

    def ask(self, text: str | None, **_request: Any) -> Future[dict[str, Any]]:
        self.texts.append(text)
        self.asked.set()
        future: Future[dict[str, Any]] = Future()
        future.set_result({"kernels": ["k"], "problems": [], "profiles": []})
        return future

    def answer_of(self, future: Future[dict[str, Any]]) -> dict[str, Any]:
        self.goes_on.wait(60)
        return dict(future.result())


@pytest.fixture
def profile(make_profile: Callable[..., Path]) -> Iterator[Profile]:
    with open_profile(make_profile()) as found:
        yield found


def test_an_older_edit_does_not_replace_a_newer_one(profile: Profile) -> None:
    process: Any = Process()
    with ProfileLibrary() as library, ThreadPoolExecutor() as threads:
        previews = Previews(library, process)
        older = threads.submit(previews.preview, profile, "/k.py", "older")
        process.asked.wait(60)
        newer = threads.submit(previews.preview, profile, "/k.py", "newer")
        while previews.arrived < 2:
            process.goes_on.wait(0.001)
        process.goes_on.set()
        assert older.result()["superseded"]
        assert newer.result()["kernels"] == ["k"]
    assert process.texts == [None, "newer"]
