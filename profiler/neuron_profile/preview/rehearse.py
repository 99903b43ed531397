"""Traces, compiles and simulates kernel calls again, without values, into profiles."""

from __future__ import annotations

import difflib
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from neuron_profile.preview.launches import RecordedLaunch, Site
from neuron_profile.preview.overlay import load
from neuron_tools.capture.assembler import Assembler
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.capture.runtimes.python_runtime import PythonRuntime
from neuron_tools.capture.runtimes.runtime import Recording
from neuron_tools.capture.session import CaptureSession
from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.nki.capacity import SpillWarning, check_capacity
from neuron_tools.nki.kernel import Kernel, jit
from neuron_tools.nki.launch_record import read_arguments
from neuron_tools.nki.lowering import lower
from neuron_tools.nki.run import run
from neuron_tools.nki.target import set_core
from neuron_tools.records.kernel_source import KernelLaunch, KernelProgram

Follow = Callable[[str, int], int]
"""File and line of the capture -> where the line stands now."""


@frozen
class Rehearsed:
    """A kernel call that was traced again.

    Attributes:
        name: The kernel's name.
        programs: One for each physical core.
        sites: Where it is called from.
    """

    name: str
    programs: tuple[KernelProgram, ...]
    sites: tuple[Site, ...]


@frozen
class Written:
    """A profile with one execution of each call; it stands for so many."""

    profile: Path
    times: int


def trace_again(recorded: RecordedLaunch, core: NeuronCore) -> Rehearsed:
    """Trace and lower one call with the kernel as it is imported now.

    Raises:
        NkiError: The kernel breaks a rule; the text names its line.
        UsageError: The file no longer has the kernel.
    """
    launch = recorded.launch
    kernel = _kernel(launch)
    arguments, keywords = read_arguments(launch.arguments)
    set_core(core)
    asked = (kernel[launch.grid] if launch.grid else kernel).launch(values=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpillWarning)
        done = run(replace(asked, cores=launch.cores), arguments, keywords)
        for trace in done.traces:
            check_capacity(trace)
    programs = tuple(lower(trace, kernel.name).program for trace in done.traces)
    return Rehearsed(kernel.name, programs, recorded.sites)


def _kernel(launch: KernelLaunch) -> Kernel:
    found: Any = load(launch.module, launch.file)
    for name in launch.function.split("."):
        found = getattr(found, name, None)
    if found is None:
        raise UsageError(f"{launch.function} is no longer in the file.")
    return found if isinstance(found, Kernel) else jit(found)


def write_profiles(
    rehearsed: Sequence[Rehearsed], options: CaptureOptions, follow: Follow
) -> Iterator[Written]:
    """Write one profile for the calls that ran equally often, with one execution of each."""
    by_times: dict[int, list[tuple[Rehearsed, Site]]] = defaultdict(list)
    for each in rehearsed:
        for site in each.sites:
            by_times[site.times].append((each, site))
    for times, calls in by_times.items():
        own = replace(options, directory=options.directory / f"{times}.nprof")
        _write(calls, own, follow)
        yield Written(own.directory, times)


def _write(calls: Iterable[tuple[Rehearsed, Site]], options: CaptureOptions, follow: Follow) -> None:
    assembler = Assembler(options, ())
    session = CaptureSession(options, _Rehearsal(calls, follow))
    session.start()
    session.stop()
    assembler.finish(complete=True, exit_status=None, derived=False)


class _Rehearsal(PythonRuntime):
    """Records executions of calls that were traced already."""

    def __init__(self, calls: Iterable[tuple[Rehearsed, Site]], follow: Follow) -> None:
        super().__init__()
        self._calls = calls
        self._follow = follow

    def facts(self) -> Mapping[str, Any]:
        """None."""
        return {}

    def start(self, recording: Recording) -> None:
        """Place all executions, one after another."""
        recorder = self._record(recording, published=False)
        for number, (call, site) in enumerate(self._calls, 1):
            place = (site.file, self._follow(site.file, site.line), "")
            recording.definitions.stack(number, (place,))
            for core, program in enumerate(call.programs):
                executable, duration_ns = recording.store.executable_of(program, (id(call), core))
                recorder.execute(executable, duration_ns, call.name, (core,), stack=number)


def follow_lines(file: str, before: str, after: str) -> Follow:
    """Where lines of a file stand after an edit; those that are not in both texts stay where they were."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    places = {
        block.a + step + 1: block.b + step + 1
        for block in matcher.get_matching_blocks()
        for step in range(block.size)
    }
    return lambda path, line: places.get(line, line) if path == file else line
