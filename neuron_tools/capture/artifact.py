"""Executes a compiled artifact on the simulated device and writes its profile, as a host program would do.

The artifact's inputs have no values and none are needed: a Program's time does not depend on them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuron_tools.capture.assembler import Assembler, CaptureReport
from neuron_tools.capture.definitions import DefinitionsWriter
from neuron_tools.capture.options import CaptureOptions, simulated_core
from neuron_tools.capture.process_log import claim_process_directory
from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.hardware import NeuronCore
from neuron_tools.neff import Neff
from neuron_tools.neff.generation import check_generation
from neuron_tools.records.capture_log import EVENTS_FILE, RECORD_DTYPE, RecordKind
from neuron_tools.records.executable import Executable, save
from neuron_tools.simulator import simulate

EXECUTABLE_FILE = "executables/000001.npz"


@dataclass(frozen=True, slots=True)
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
    executable = Executable(1, neff.program.name, "graph", neff.program, simulate(neff.program, core))
    (directory / EXECUTABLE_FILE).parent.mkdir()
    save(executable, directory / EXECUTABLE_FILE)
    records = _records(executable, repetition, core, options.fixed_ns_per_dispatch)
    (directory / EVENTS_FILE).write_bytes(records.tobytes())
    _define(directory, executable, len(records), int(records["host_end_ns"][-1]), options, command)


def _records(
    executable: Executable, repetition: Repetition, core: NeuronCore, dispatch_ns: int
) -> npt.NDArray[np.void]:
    """One record per profiled execution: dispatched, run, waited for."""
    launch_ns = round(core.launch_overhead_ns)
    one_ns = dispatch_ns + launch_ns + executable.duration_ns
    records = np.zeros(len(repetition.profiled), RECORD_DTYPE)
    start_ns = np.arange(len(records), dtype=np.int64) * one_ns
    records["kind"] = RecordKind.GRAPH
    records["executable"] = records["name"] = 1
    records["host_start_ns"], records["host_end_ns"] = start_ns, start_ns + one_ns
    records["device_start_ns"] = start_ns + dispatch_ns + launch_ns
    records["device_end_ns"] = start_ns + one_ns
    records["sequence"] = records["forward_sequence"] = -1
    return records


def _define(
    directory: Path, executable: Executable, records: int, end_ns: int, options: CaptureOptions,
    command: Sequence[str],
) -> None:  # fmt: skip
    definitions = DefinitionsWriter(directory)
    definitions.write(
        "process", process_id=0, parent_id=os.getpid(), command=list(command), start_unix_ns=0,
        target=options.target, rank=None,
    )  # fmt: skip
    definitions.name(1, executable.name)
    definitions.write("executable", id=1, file=EXECUTABLE_FILE)
    definitions.write("end", host_end_ns=end_ns, record_count=records)
    definitions.close()
