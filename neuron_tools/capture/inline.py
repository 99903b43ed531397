"""`with neuron_tools.profile("run.nprof"):` records this very process."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from neuron_tools import hardware
from neuron_tools.capture.options import CaptureOptions, EagerFusion, eager_fusion_of, simulated_core
from neuron_tools.errors import NeuronToolsError, UsageError

if TYPE_CHECKING:
    from neuron_tools.capture.runtimes import Runtime
    from neuron_tools.capture.session import CaptureSession
    from neuron_tools.profile.reader import Profile


class profile:
    """Record what the block runs on the simulated device into a profile.

    The profile is written when the block ends. An exception in the block leaves one that says it is
    incomplete; a killed process leaves the recording, for `neuron-profile recover`.

    Example:
        >>> with neuron_tools.profile("run.nprof", target="trn2") as run:
        ...     model(batch)
        >>> run.summary()["total_time"]

    Args:
        path: Directory to make; it must not exist.
        target: Generation or instance to simulate.
        lnc: Physical NeuronCores that make one logical NeuronCore. None: as the environment says, else the
            generation's own (Trn2, Trn3: 2).
        host_clock: "measured" or "fixed".
        settings: Hardware figures to change, e.g. ["hbm_bandwidth=2x"].
        eager_fusion: Which eager operations run as one execution: "auto", those that wait while the device is
            busy; "on", also those for which it is free; "off", none. None: as the environment says.
        host_samples: Whether to sample what the host does; only with a measured clock.

    Raises:
        UsageError: The target, the clock or a setting is unknown. Entering the block raises it where the
            path exists or this process is being recorded already.
        NeuronToolsError: Entering: torch is missing, the device cannot be built or the path not written.
            Leaving: the disk is full.
    """

    def __init__(
        self,
        path: str | Path,
        target: str = "trn2",
        lnc: int | None = None,
        host_clock: str = "measured",
        settings: Iterable[str] = (),
        eager_fusion: EagerFusion | None = None,
        host_samples: bool = True,
    ) -> None:
        self.path = Path(path)
        chosen = (settings,) if isinstance(settings, str) else tuple(settings)
        fusion = eager_fusion or eager_fusion_of(os.environ)
        self._options = CaptureOptions(
            self.path.absolute(), target, hardware.chosen_lnc(target, lnc), host_clock, settings=chosen,
            eager_fusion=fusion, host_samples=host_samples,
        )  # fmt: skip
        simulated_core(self._options)

    def __enter__(self) -> profile:
        from neuron_tools.capture.assembler import Assembler
        from neuron_tools.capture.session import CaptureSession, ensure_not_recording

        ensure_not_recording()
        if self.path.exists():
            raise UsageError(f"{self.path} exists: choose another path, or remove it first.")
        if "torch" in sys.modules:
            from neuron_tools.capture.timed_run import stop_timed_torch

            stop_timed_torch()
        sessions = [CaptureSession(self._options, runtime) for runtime in _runtimes()]
        self._assembler = Assembler(self._options, sys.orig_argv)
        self._sessions: list[CaptureSession] = []
        try:
            for session in sessions:
                session.start()
                self._sessions.append(session)
        except BaseException:
            self._abandon()
            raise
        return self

    def _abandon(self) -> None:
        for session in self._sessions:
            session.abandon()
        self._assembler.discard()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for session in self._sessions:
            session.stop()
        stopped = isinstance(error, KeyboardInterrupt)
        try:
            self._assembler.finish(complete=error is None, exit_status=None, interrupted=stopped)
        except NeuronToolsError as failure:
            if error is None:
                raise
            warnings.warn(str(failure), RuntimeWarning, stacklevel=2)

    def open(self) -> Profile:
        """The finished profile.

        Raises:
            NotAProfileError: The block was not entered yet.
        """
        from neuron_tools.profile.reader import open_profile

        return open_profile(self.path)

    def summary(self) -> dict[str, Any]:
        """The finished profile's summary metrics; every `*_percent` is a fraction from 0 to 1."""
        with self.open() as opened:
            return opened.summary()


def _runtimes() -> list[Runtime]:
    """One for each framework that the program has imported; PyTorch's where it has imported none."""
    runtimes: list[Runtime] = []
    if "jax" in sys.modules:
        from neuron_tools.capture.runtimes.jax_runtime import JaxRuntime

        runtimes.append(JaxRuntime())
    if "torch" in sys.modules or not runtimes:
        from neuron_tools.capture.runtimes.torch_runtime import TorchRuntime

        _register_device()
        runtimes.append(TorchRuntime())
    return runtimes


def _register_device() -> None:
    from neuron_tools.device.autoload import register

    try:
        register()
    except ModuleNotFoundError as error:
        raise NeuronToolsError(
            f"Recording needs the package '{error.name}': install it with "
            "'python -m pip install \"neuron-tools[torch]\"'."
        ) from error
