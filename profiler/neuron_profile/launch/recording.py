"""Records a command: runs it, turns its logs into the profile meanwhile, and closes the profile."""

from __future__ import annotations

import os
from collections.abc import Sequence

from neuron_profile.launch.child import Ending, run
from neuron_tools.capture.assembler import Assembler, CaptureReport
from neuron_tools.capture.environment import child_environment
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen


@frozen
class Recording:
    """What came of a capture.

    Attributes:
        report: None where the profile could not be closed.
        failure: Why recording stopped before the command ended, or the profile could not be closed.
    """

    ending: Ending
    report: CaptureReport | None
    failure: NeuronToolsError | None


def record(command: Sequence[str], options: CaptureOptions, launcher: Sequence[str] = ()) -> Recording:
    """Run a command on the simulated device and write its profile.

    A profile that cannot be written any more (full disk) does not stop the command.

    Args:
        command: What the profile shows.
        launcher: What starts it, if not itself.

    Raises:
        NeuronToolsError: The profile cannot be begun, or the command cannot be started.
    """
    assembler = Assembler(options, command)
    follower = _Follower(assembler)
    ending = run(launcher or command, {**os.environ, **child_environment(options)}, follower.tick)
    report = follower.finish(ending)
    return Recording(ending, report, follower.failure)


class _Follower:
    """Drives an assembler until it first fails."""

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self.failure: NeuronToolsError | None = None

    def tick(self) -> None:
        """Take in what has been logged."""
        if self.failure is None:
            try:
                self._assembler.poll()
            except NeuronToolsError as error:
                self.failure = error

    def finish(self, ending: Ending) -> CaptureReport | None:
        """Close the profile; it is complete only if everything was taken in."""
        try:
            return self._assembler.finish(self.failure is None, ending.exit_status, ending.interrupted)
        except NeuronToolsError as error:
            self.failure = self.failure or error
            return None
