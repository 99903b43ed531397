"""Executes a compiled artifact on the simulated device and writes its profile, as a host program would do.

The artifact's inputs have no values and none are needed: a Program's time does not depend on them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuron_tools.capture.assembler import Assembler, CaptureReport
from neuron_tools.capture.definitions import DefinitionsWriter
from neuron_tools.capture.options import CaptureOptions, simulated_core
from neuron_tools.capture.process_log import claim_process_directory
from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.neff import Neff
from neuron_tools.neff.generation import check_generation
from neuron_tools.records.capture_log import EVENTS_FILE, RECORD_DTYPE, RecordKind
from neuron_tools.records.executable import Executable, save
from neuron_tools.simulator import simulate

EXECUTABLE_FILE = "executables/{:06d}.npz"


@frozen
class Repetition:
    """How often an artifact is executed, and which executions stand in the profile.

    Attributes:
        count: Executions, one after the other; each is waited for.
        profile_every: The profile holds every so manyth one: 2 leaves the first out.
    """

    count: int = 1
    profile_every: int = 1

    def __post_init__(self) -> None:
        if self.count < 1 or self.profile_every < 1:
            raise UsageError("An artifact is executed, and its executions counted, at least by 1.")
        if self.profile_every > self.count:
            raise UsageError(
                f"Of {self.count} execution(s) none is number {self.profile_every}: ask for more executions "
                "with --num-exec, or profile earlier ones with --profile-nth-exec."
            )

    @property
    def profiled(self) -> range:
        """Numbers, from 0, of the executions that stand in the profile."""
        return range(self.profile_every - 1, self.count, self.profile_every)


def profile_artifact(
    neff: Neff, options: CaptureOptions, repetition: Repetition, command: Sequence[str]
) -> CaptureReport:
    """Execute an artifact and write the profile.

    Args:
        neff: What to execute.
        options: Where the profile goes, and what is simulated.
        repetition: How often.
        command: What the profile says was run.

    Raises:
        UsageError: The directory exists.
        NeuronToolsError: It cannot be written.
    """
    core = simulated_core(options)
    check_generation(neff.program.target, core.generation)
    assembler = Assembler(options, command)
    try:
        _write_log(neff, options, repetition, core, command)
    except OSError as error:
        assembler.discard()
        raise NeuronToolsError(
            f"The log of {options.directory} cannot be written: {error.strerror}."
        ) from error
    return assembler.finish(complete=True, exit_status=0)


def _write_log(
    neff: Neff, options: CaptureOptions, repetition: Repetition, core: NeuronCore, command: Sequence[str]
) -> None:
    """The log that a process leaves which does nothing else."""
    directory = claim_process_directory(options.log_directory)
    executables = [
        Executable(number, program.name, "graph", program, simulate(program, core))
        for number, program in enumerate(neff.programs, 1)
    ]
    for executable in executables:
        path = directory / EXECUTABLE_FILE.format(executable.number)
        path.parent.mkdir(exist_ok=True)
        save(executable, path)
    records = _records(executables, repetition, core, options.fixed_ns_per_dispatch)
    (directory / EVENTS_FILE).write_bytes(records.tobytes())
    _define(directory, executables, len(records), int(records["host_end_ns"][-1]), options, command)


def _records(
    executables: Sequence[Executable], repetition: Repetition, core: NeuronCore, dispatch_ns: int
) -> npt.NDArray[np.void]:
    """One record per profiled execution and core: dispatched, run on one core after the other, waited for."""
    durations = np.array([executable.duration_ns for executable in executables], np.int64)
    after_ns = dispatch_ns + np.cumsum(durations + round(core.launch_overhead_ns))
    records = np.zeros((len(repetition.profiled), len(executables)), RECORD_DTYPE)
    start_ns = np.arange(len(records), dtype=np.int64)[:, None] * after_ns[-1]
    records["kind"] = RecordKind.GRAPH
    records["device"] = np.arange(len(executables))
    records["executable"] = records["name"] = np.arange(len(executables)) + 1
    records["host_start_ns"], records["host_end_ns"] = start_ns, start_ns + after_ns[-1]
    records["device_start_ns"] = start_ns + after_ns - durations
    records["device_end_ns"] = start_ns + after_ns
    records["sequence"] = records["forward_sequence"] = -1
    return records.reshape(-1)


def _define(
    directory: Path, executables: Sequence[Executable], records: int, end_ns: int, options: CaptureOptions,
    command: Sequence[str],
) -> None:  # fmt: skip
    definitions = DefinitionsWriter(directory)
    definitions.process(
        process_id=0, parent_id=os.getpid(), command=list(command), start_unix_ns=0, target=options.target,
        rank=None,
    )  # fmt: skip
    for executable in executables:
        definitions.name(executable.number, executable.name)
        file = EXECUTABLE_FILE.format(executable.number)
        definitions.write("executable", id=executable.number, file=file)
    definitions.write("end", host_end_ns=end_ns, record_count=records)
    definitions.close()
