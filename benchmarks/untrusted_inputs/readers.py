"""What is read of others: an example of each kind, and the reading of one as far as a command reads it."""

from __future__ import annotations

import random
import shutil
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.untrusted_inputs import servers
from benchmarks.untrusted_inputs.damage import damaged
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile, open_profile
from neuron_tools.profile.schema import TABLES, table_schema
from neuron_tools.profile.store.layout import MANIFEST_NAME


@frozen
class Damaged:
    """An example of which one file is damaged.

    Attributes:
        folder: Where the example stands.
        spoilt: The file.
    """

    folder: Path
    spoilt: Path


@frozen
class Reader:
    """A kind of input.

    Attributes:
        make: Writes a sound example below an empty folder.
        files: Patterns of the example's files of which one is damaged.
        read: Reads the example in a folder, told which file is damaged.
        changes: The folder of the example in which reading changes files, "" for the example's own; None if
            it changes none.
        together: Reads several damaged examples as one, into an empty folder, where most of the time goes to
            what follows once all is read. Returns those that were read; the others are to be read alone.
    """

    make: Callable[[Path], None]
    files: tuple[str, ...]
    read: Callable[[Path, Path], None]
    changes: str | None = None
    together: Callable[[Sequence[Damaged], Path], list[Damaged]] | None = None

    def places(self, folder: Path) -> list[Path]:
        """The files of an example of which one is damaged."""
        found = {path for pattern in self.files for path in folder.glob(pattern)}
        return sorted(path for path in found if path.is_file())

    def damage(self, folder: Path, chance: random.Random) -> Path:
        """Damage one file of a sound example, and say which."""
        chosen = chance.choice(self.places(folder))
        chosen.write_bytes(damaged(chosen.read_bytes(), chance))
        return chosen

    def mend(self, folder: Path, spoilt: Path, sound: Path) -> None:
        """Make a damaged example that was read as it was, from a sound one."""
        if self.changes is not None:
            shutil.rmtree(folder / self.changes, ignore_errors=True)
            shutil.copytree(sound / self.changes, folder / self.changes)
        shutil.copyfile(sound / spoilt.relative_to(folder), spoilt)


def _trace(name: str) -> Reader:
    def make(folder: Path) -> None:
        (folder / "trace").write_bytes(_of_tests("fixtures.foreign_traces").all_traces()[name])

    return Reader(make, ("trace",), _read_trace, changes="", together=_read_traces)


def _read_trace(folder: Path, spoilt: Path) -> None:
    from neuron_tools.profile.importers import import_traces

    import_traces([folder / "trace"], folder / "out.nprof", force=True)
    _read_every_table(folder / "out.nprof")


def _read_traces(inputs: Sequence[Damaged], folder: Path) -> list[Damaged]:
    """Import traces as those of one job, without those that are refused."""
    from neuron_tools.profile.importers import import_traces

    left, read = list(inputs), 0

    def progress(done: int, total: int) -> None:
        nonlocal read
        read = done

    while left:
        read = 0
        try:
            import_traces([each.spoilt for each in left], folder / "out.nprof", progress=progress)
        except NeuronToolsError:
            if read == len(left):
                raise
            del left[read]
        else:
            _read_every_table(folder / "out.nprof")
            break
    return left


def _read_every_table(path: Path) -> None:
    with open_profile(path) as profile:
        for table in profile.tables():
            deque(profile.stored_batches(table, table_schema(table).column_names), maxlen=0)


def _make_artifact(folder: Path) -> None:
    from neuron_tools.neff import write_neff

    write_neff(_of_tests("unit.neff.computation").artifact(), folder / "model.neff")


def _read_artifact(folder: Path, spoilt: Path) -> None:
    from neuron_tools import hardware
    from neuron_tools.neff import read_neff
    from neuron_tools.simulator.simulation import simulate

    simulate(read_neff(folder / "model.neff").program, hardware.get("trn2"))


def _make_log(folder: Path) -> None:
    """A capture that was killed: part of its tables, and its log."""
    from neuron_tools.capture.assembler import Assembler
    from neuron_tools.capture.options import CaptureOptions

    profile = folder / "run.nprof"
    assembler = Assembler(CaptureOptions(profile), ["python", "train.py"])
    _of_tests("unit.capture.logs").write_log(
        profile / "log/process-0000", _records(), _executables(), ended=False
    )
    assembler.poll()
    assembler._lock.release()


def _make_profile(folder: Path) -> None:
    from neuron_tools.capture.assembler import Assembler
    from neuron_tools.capture.options import CaptureOptions

    options = CaptureOptions(folder / "run.nprof")
    assembler = Assembler(options, ["python", "train.py"])
    _of_tests("unit.capture.logs").write_log(
        options.log_directory / "process-0000", _records(), _executables()
    )
    assembler.finish(complete=True, exit_status=0)


def _of_tests(name: str) -> Any:
    """A module of the tests that makes sound examples."""
    return import_module(f"tests.{name}")


def _records() -> list[Any]:
    one_step = _of_tests("unit.capture.logs").one_step
    return [row for step in range(2) for row in one_step(1_000 + 40_000 * step)]


def _executables() -> tuple[Any, ...]:
    make = _of_tests("unit.capture.programs").fused_executable
    return make(7, "eager"), make(8, "graph")


def _read_log(folder: Path, spoilt: Path) -> None:
    from neuron_tools.capture.recovery import recover

    recover(folder / "run.nprof")
    with open_profile(folder / "run.nprof") as profile:
        profile.summary()


def _read_logs(inputs: Sequence[Damaged], folder: Path) -> list[Damaged]:
    """Recover logs as those of one capture's processes; each damaged manifest is its own."""
    logs = [each for each in inputs if each.spoilt.name != MANIFEST_NAME]
    if logs:
        profile = folder / "run.nprof"
        shutil.copytree(logs[0].folder / "run.nprof", profile)
        shutil.rmtree(profile / "log")
        for number, each in enumerate(logs):
            shutil.copytree(each.folder / "run.nprof/log/process-0000", profile / f"log/process-{number:04}")
        _read_log(folder, profile)
    return logs


def _read_tables(folder: Path, spoilt: Path) -> None:

    with open_profile(folder / "run.nprof") as profile:
        for table in TABLES.keys() & {spoilt.parent.name} or profile.tables():
            profile.arrow(table)
        profile.summary()


def _advise(folder: Path, spoilt: Path) -> None:
    from neuron_profile.analysis.advice.advise import advise

    advise(_with_answers(folder / "run.nprof"))


@cache
def _with_answers(path: Path) -> Profile:
    """The profile, which computes an answer but once: its tables are sound, whatever its programs are."""
    profile = open_profile(path)
    profile.query = _remembering(profile.query)  # type: ignore[method-assign]  # of this one profile
    return profile


def _remembering(function: Callable[..., Any]) -> Callable[..., Any]:
    answers: dict[str, Any] = {}

    def remembered(*asked: Any, **named: Any) -> Any:
        key = repr((asked, named))
        if key not in answers:
            answers[key] = function(*asked, **named)
        return answers[key]

    return remembered


def _draw(folder: Path, spoilt: Path) -> None:

    with open_profile(folder / "run.nprof") as profile:
        start_ns, end_ns = profile.time_range_ns()
        part_ns = (end_ns - start_ns) // 7
        for is_counter in (False, True):
            tracks = [track for track in profile.tracks() if track.is_counter == is_counter]
            profile.timelines(tracks, start_ns, end_ns, PIXELS)
            profile.timelines(tracks, start_ns + part_ns, start_ns + 2 * part_ns, PIXELS)


def _make_requests(folder: Path) -> None:
    _make_profile(folder)
    servers.make_requests(folder / "run.nprof", folder / "requests")


def _answer(folder: Path, spoilt: Path) -> None:
    """Ask the Explorer with the damaged request; of the sound example with all of them."""
    for request in [spoilt] if spoilt.is_file() else sorted((folder / "requests").iterdir()):
        servers.ask(folder / "run.nprof", request.read_bytes())


PIXELS = 500
TRACES = (
    "torch.profiler", "Chrome trace", "XLA trace JSON", "AWS Neuron profile JSON", "Perfetto trace",
    "XLA XSpace", "monitor JSON lines", "speedscope", "pprof", "torch memory timeline", "rocprofiler-sdk",
    "rocprofiler CSV", "Nsight Systems", "Ascend profiler database", "torch memory snapshot",
    "PyTorch execution trace", "pprof (memory)", "V8 CPU profile", "rocpd", "ROCm Profile Data",
)  # fmt: skip
READERS = {
    **{name: _trace(name) for name in TRACES},
    "artifact (.neff)": Reader(_make_artifact, ("model.neff",), _read_artifact),
    "capture log": Reader(
        _make_log, ("run.nprof/log/**/*.*", "run.nprof/profile.json"), _read_log, "", _read_logs
    ),
    "profile": Reader(_make_profile, ("run.nprof/*.json", "run.nprof/*/*.parquet"), _read_tables),
    "timeline index": Reader(_make_profile, ("run.nprof/timeline/*",), _draw, "run.nprof/timeline"),
    "HTTP request": Reader(_make_requests, ("requests/*",), _answer),
    "monitor's tree": Reader(servers.make_tree, ("tree/**/*",), lambda folder, spoilt: servers.watch(folder)),
    "profile's programs": Reader(_make_profile, ("run.nprof/programs/*",), _advise),
}
