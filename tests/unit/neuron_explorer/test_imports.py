from collections.abc import Iterator
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from neuron_explorer.analyses import Analyses
from neuron_explorer.imports import start_import
from neuron_explorer.library import ProfileLibrary
from neuron_explorer.page import Site
from neuron_explorer.tasks import Tasks
from neuron_explorer.user_store import UserStore

PATIENCE_S = 60.0


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ProfileLibrary([]) as library:
        yield Site(library, Analyses(library), Tasks(), UserStore(tmp_path / "store"))


def test_traces_of_one_name_become_two_profiles_while_both_are_read(
    site: Site, make_profile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles = {name: make_profile(name) for name in ("trace.nprof", "trace-2.nprof")}
    both_began = Event()

    def held(paths: Any, target: Path, **_: Any) -> Any:
        assert both_began.wait(PATIENCE_S)
        return SimpleNamespace(path=profiles[target.name])

    monkeypatch.setattr("neuron_tools.profile.lockdown.import_process.import_apart", held)
    tasks = [start_import(site, [Path(folder, "trace.json")]) for folder in ("rank0", "rank1")]
    both_began.set()
    assert all(task.job.wait(PATIENCE_S) for task in tasks)
    assert [(task.title, task.state) for task in tasks] == [
        ("trace.nprof", "done"),
        ("trace-2.nprof", "done"),
    ]
