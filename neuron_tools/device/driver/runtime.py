"""This process's simulated driver: publishing begins when the device is first used."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from neuron_tools.device.driver.root import root_folder

if TYPE_CHECKING:
    from neuron_tools.device.driver.publisher import Publisher
    from neuron_tools.device.driver.recorder_source import RecorderSource
    from neuron_tools.device.driver.source import ActivitySource
    from neuron_tools.device.driver.totals import Totals
    from neuron_tools.device.driver.usage import ExecutableUsage

DEFAULT_TARGET = "trn2"


class DriverRuntime:
    """What one runtime of this process did, and the thread that publishes it.

    A process has one file in the tree: of several runtimes, the first to use the device publishes.
    """

    _publishing: DriverRuntime | None = None

    def __init__(self, make_source: Callable[[], ActivitySource]) -> None:
        self._make_source = make_source
        self._source: ActivitySource | None = None
        self._totals: Totals | None = None
        self._publisher: Publisher | None = None
        self._session: dict[str, Any] = {"target": DEFAULT_TARGET, "profile": None, "lnc": None}

    def start(self) -> None:
        """Begins to publish, unless `$NEURON_SYSFS_ROOT` is empty."""
        from neuron_tools.device.driver.publisher import Publisher

        root = root_folder()
        if root is None or DriverRuntime._publishing is not None:
            return
        DriverRuntime._publishing = self
        source, totals = self._counted()
        self._publisher = Publisher(root, source, totals, self._session)
        self._publisher.start()
        atexit.register(self.stop)

    def stop(self) -> None:
        """Takes this process out of the tree."""
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            publisher.stop()
            DriverRuntime._publishing = None

    def flush(self) -> None:
        """Lets the tree show what was done until now."""
        if self._publisher is not None:
            self._publisher.flush()

    def begin_session(self, target: str, profile: str | None, lnc: int) -> None:
        """A recording, or another stretch of simulated time, begins: executables are numbered anew.

        Args:
            target: What is simulated.
            profile: Where the recording goes; None where nothing is kept.
            lnc: Physical cores of each NeuronCore.
        """
        if root_folder() is None:
            return
        self._counted()[1].begin_session()
        self._session.update(target=target, profile=profile, lnc=lnc)

    def define(self, number: int, make_usage: Callable[[], ExecutableUsage]) -> None:
        """What an execution of the session's executable adds to the counters; made only if it is wanted."""
        if self._totals is not None:
            self._totals.define(number, make_usage())

    def end_session(self) -> None:
        """The session ends; to be called while its clock still runs."""
        if self._totals is None:
            return
        self._totals.end_session()
        self._session.update(profile=None)

    def forget(self) -> None:
        """A forked child has done nothing yet, and its parent's thread is not in it."""
        self._source = self._totals = self._publisher = None
        DriverRuntime._publishing = None
        self._session.update(profile=None)

    def _counted(self) -> tuple[ActivitySource, Totals]:
        from neuron_tools.device.driver.totals import Totals

        if self._source is None or self._totals is None:
            self._source = self._make_source()
            self._totals = Totals(self._source)
        return self._source, self._totals


def _torch_source() -> ActivitySource:
    from neuron_tools.device.driver.torch_source import TorchSource

    return TorchSource()


torch_driver = DriverRuntime(_torch_source)
"""The driver of the `neuron` PyTorch device."""


@cache
def host_source() -> RecorderSource:
    """Counts what this process runs without the PyTorch device."""
    from neuron_tools.device.driver.recorder_source import RecorderSource

    return RecorderSource()


host_driver = DriverRuntime(host_source)
"""The driver of what runs without the PyTorch device: JAX's computations, NKI kernels."""

os.register_at_fork(after_in_child=torch_driver.forget)
os.register_at_fork(after_in_child=host_driver.forget)


def publish_from_first_use() -> None:
    """Lets the PyTorch device publish as soon as it gives memory."""
    from neuron_tools.device import native

    native.core().set_first_allocation_callback(torch_driver.start)
