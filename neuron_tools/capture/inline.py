"""`with neuron_tools.profile("run.nprof"):` records this very process."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from neuron_tools.capture.options import CaptureOptions

if TYPE_CHECKING:
    from neuron_tools.profile.reader import Profile


class profile:
    """Record what the block runs on the simulated device into a profile.

    Example:
        >>> with neuron_tools.profile("run.nprof", target="trn2") as run:
        ...     model(batch)
        >>> run.summary()["total_time"]

    Args:
        path: Directory to make; it must not exist.
        target: Generation or instance to simulate.
        host_clock: "measured" or "fixed".
        settings: Hardware figures to change, e.g. ["hbm_bandwidth=2x"].
    """

    def __init__(
        self,
        path: str | Path,
        target: str = "trn2",
        lnc: int = 1,
        host_clock: str = "measured",
        settings: tuple[str, ...] = (),
    ) -> None:
        self.path = Path(path)
        self._options = CaptureOptions(
            self.path.absolute(), target, lnc, host_clock, settings=tuple(settings)
        )

    def __enter__(self) -> profile:
        import sys

        from neuron_tools.capture.assembler import Assembler
        from neuron_tools.capture.session import CaptureSession
        from neuron_tools.device.autoload import autoload

        autoload()
        self._assembler = Assembler(self._options, sys.orig_argv)
        self._session = CaptureSession(self._options)
        self._session.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.stop()
        self._assembler.finish(complete=error is None, exit_status=None, interrupted=error is not None)

    def open(self) -> Profile:
        """The finished profile."""
        from neuron_tools.profile.reader import open_profile

        return open_profile(self.path)

    def summary(self) -> dict[str, Any]:
        """The finished profile's summary metrics."""
        return self.open().summary()
