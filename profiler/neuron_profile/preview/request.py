"""One question of an editor, answered in a process of its own: it runs the user's code."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from neuron_profile.preview.launches import launches_of
from neuron_profile.preview.module_calls import module_calls_of, run_again
from neuron_profile.preview.overlay import SCRIPT, import_with
from neuron_profile.preview.problems import problem_of
from neuron_profile.preview.rehearse import Written, follow_lines, trace_again, write_profiles
from neuron_tools import compat
from neuron_tools.capture.options import CaptureOptions, simulated_core
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile, open_profile

MEMORY_BYTES = 16 << 30
CPU_S = 60
_TEXTS = "SELECT path, text FROM SourceFile WHERE text IS NOT NULL"


@frozen
class Request:
    """What to rehearse.

    Attributes:
        profile: The profile whose kernel calls are made again.
        file: The file, as the profile names it.
        text: Its text now; None: everything as it was captured.
        folder: Where the profiles go.
    """

    profile: str
    file: str
    text: str | None
    folder: str


def confine() -> None:
    """Let this process print nothing, and take so much memory and processor time at most."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)


def answer(request: Request) -> dict[str, Any]:
    """Profiles of the calls with the text, and what is wrong with it.

    Returns:
        "kernels": names of the kernels and modules that were simulated; none where the file has part in no
        call that can be made again. "profiles": path and times of each. "problems": fields of each `Problem`.
    """
    with open_profile(request.profile) as profile:
        captured = dict(zip(*profile.query(_TEXTS).to_pydict().values()))
        launches = launches_of(profile, request.file)
        calls = module_calls_of(profile, request.file)
        options = _options(profile, Path(request.folder))
    scripts = {each.launch.file for each in launches if each.launch.module == SCRIPT}
    scripts.update(*(call.scripts for call in calls))
    import_with(_texts(captured, request), scripts)
    compat.install()
    core, rehearsed, problems = simulated_core(options), [], []
    for each in launches:
        try:
            rehearsed.append(trace_again(each, core))
        except (Exception, SystemExit) as error:  # an edited kernel may fail in any way
            problems.append(problem_of(error, request.file))
    before = captured.get(request.file, "")
    follow = follow_lines(request.file, before, before if request.text is None else request.text)
    modules: list[Written] = []
    for call in calls:
        try:
            modules.append(run_again(call, options))
        except (Exception, SystemExit) as error:  # an edited module, too
            problems.append(problem_of(error, request.file))
    whole = [] if problems else [*write_profiles(rehearsed, options, follow), *modules]
    names = [*(each.name for each in rehearsed), *(call.layer.rpartition("/")[2] for call in calls)]
    return {
        "kernels": list(dict.fromkeys(names)),
        "profiles": [{"path": str(each.profile), "times": each.times} for each in whole],
        "problems": [asdict(problem) for problem in dict.fromkeys(problems)],
    }


def _texts(captured: Mapping[str, str], request: Request) -> Mapping[str, str]:
    """The texts to import: all as captured, or the edited one with the others as they are on the disk."""
    if request.text is not None:
        return {request.file: request.text}
    return captured


def _options(profile: Profile, folder: Path) -> CaptureOptions:
    """The device that was captured, under the fixed clock."""
    facts = profile.metadata
    return CaptureOptions(
        folder, str(facts.get("target", "trn2")), int(facts.get("lnc", 1)), "fixed",
        settings=tuple(facts.get("settings", ())),
    )  # fmt: skip
