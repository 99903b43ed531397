"""Takes traces of other tools into the library: each becomes a profile in a folder of the user's own."""

from __future__ import annotations

import shutil
from collections.abc import Container, Sequence
from functools import partial
from pathlib import Path
from threading import Lock

from neuron_explorer.jobs import Progress
from neuron_explorer.library import PROFILE_SUFFIX
from neuron_explorer.page import Site
from neuron_explorer.parts.card import file_name
from neuron_explorer.tasks import Task, told
from neuron_tools.errors import UsageError
from neuron_tools.profile.importers import TraceError

FOLDER = "imported"
_choosing = Lock()
_SUFFIXES = (".gz", ".json", ".pt.trace", ".trace", ".pftrace", ".perfetto-trace", ".pb", ".xplane", ".jsonl")


def add_path(site: Site, text: str) -> str:
    """Open a profile, look into a folder, or import a trace: what stands at a path that the user typed.

    Returns:
        What was done, as a sentence.

    Raises:
        NeuronToolsError: There is nothing of use.
    """
    if not text.strip():
        raise UsageError("Type the path of a profile, a folder of profiles, or a trace.")
    site.sharing.require_paths()
    path = Path(text.strip()).expanduser()
    if path.is_file() and path.name != "profile.json":
        start_import(site, [path])
        return f"Importing {path.name}."
    added = site.library.add(path if "://" not in text else text.strip())
    return f"Added the folder {path.name}." if added is None else f"Added {path.name}."


def start_import(site: Site, paths: Sequence[Path], *, remove: bool = False) -> Task:
    """Turn traces into one profile in the background, and add it to the library.

    Args:
        remove: Whether the traces are temporary files, removed at the end.
    """

    def run(progress: Progress, target: Path) -> str:
        from neuron_tools.profile.lockdown.import_process import import_apart

        tell = told(progress, f"Importing {target.name}")
        try:
            report = import_apart(paths, target, progress=tell, interrupting=progress.interrupting)
        except TraceError:
            progress.check()
            raise
        finally:
            for path in paths if remove else ():
                shutil.rmtree(path.parent, ignore_errors=True)
        return site.library.add(report.path) or ""

    with _choosing:
        running = {task.title for task in site.tasks.all("import") if task.state == "running"}
        target = _free_target(site.store.folder / FOLDER, profile_name(paths[0].name), running)
        return site.tasks.start("import", target.name, partial(run, target=target))


def profile_name(trace: str) -> str:
    """Name of the profile that a trace becomes: its own without what says the format, and made harmless."""
    name = trace
    shortened = True
    while shortened:
        ending = next((suffix for suffix in _SUFFIXES if name.lower().endswith(suffix)), "")
        shortened = bool(ending) and len(name) > len(ending)
        name = name[: -len(ending)] if shortened else name
    return f"{file_name(name)}{PROFILE_SUFFIX}"


def _free_target(folder: Path, name: str, taken: Container[str]) -> Path:
    """Where nothing stands, and nothing is about to: an import makes its folder only after a while."""
    folder.mkdir(parents=True, exist_ok=True)
    stem, number, target = name.removesuffix(PROFILE_SUFFIX), 1, folder / name
    while target.exists() or target.name in taken:
        number += 1
        target = folder / f"{stem}-{number}{PROFILE_SUFFIX}"
    return target
