"""`torch_neuronx.profiling`: PyTorch's profiler records the device beside, as TorchNeuron's.

Each window of a `torch.profiler.profile(experimental_config=NeuronConfig(...))` becomes a profile in a folder
of its own below the configuration's, `HOST_pid_PID/TIME`, and `NeuronProfiler.export_trace` puts PyTorch's
trace beside it. A process that is captured is recorded already: there is PyTorch's trace alone.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import datetime
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.profiler.profiler import _KinetoProfile

import neuron_tools
from neuron_tools.errors import AlreadyRecordedError, UsageError

__all__ = ["NeuronConfig", "NeuronProfiler", "ProfileMode"]

DEVICE_PROFILE, FRAMEWORK_TRACE = "device.nprof", "trace.json"
_CORES = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")


class ProfileMode(Enum):
    """What AWS's profiler writes for each; a profile of ours has all of it."""

    DEVICE = "device"
    RUNTIME = "runtime"
    CPU_UTIL = "cpu_util"
    HOST_MEMORY = "host_memory"


class NeuronConfig(_ExperimentalConfig):
    """Lets a `torch.profiler.profile` record the device, too.

    Args:
        modes: At least one; those with the host's use sample what it does.
        max_events_per_nc: Heeded by AWS's profiler only: a profile has all events.
        capture_enabled_for_nc: NeuronCores, as "0,1,2-5" or a list. A profile has all of the process.
        profile_output_dir: Where folders of windows are made. None: `output` where the process is.
        neff_cache_dir: Heeded by AWS's profiler only: a profile has the programs that it shows.
        precache_node_info: Heeded by AWS's profiler only.

    Raises:
        UsageError: There is no mode, one is none of `ProfileMode`, or the cores are no numbers and ranges.
    """

    def __init__(
        self,
        modes: Iterable[ProfileMode] | None = None,
        max_events_per_nc: int | None = None,
        capture_enabled_for_nc: str | Iterable[int] | None = None,
        profile_output_dir: str | os.PathLike[str] | None = None,
        neff_cache_dir: str | os.PathLike[str] | None = None,
        precache_node_info: bool = True,
    ) -> None:
        super().__init__()
        self.modes = _modes(modes)
        self.max_events_per_nc = max_events_per_nc
        self.capture_enabled_for_nc = _cores(capture_enabled_for_nc)
        self.profile_output_dir = Path(profile_output_dir or "output")
        self.neff_cache_dir = neff_cache_dir
        self.precache_node_info = precache_node_info


def _modes(modes: Iterable[ProfileMode] | None) -> list[ProfileMode]:
    chosen = [ProfileMode.DEVICE, ProfileMode.RUNTIME] if modes is None else list(modes)
    wrong = [mode for mode in chosen if not isinstance(mode, ProfileMode)]
    if wrong or not chosen:
        names = ", ".join(f"ProfileMode.{mode.name}" for mode in ProfileMode)
        raise UsageError(f"The modes of NeuronConfig are {chosen}: give a list of {names}.")
    return chosen


def _cores(cores: str | Iterable[int] | None) -> str | None:
    if cores is None:
        return None
    text = cores if isinstance(cores, str) else ",".join(map(str, cores))
    if not _CORES.fullmatch(text.replace(" ", "")):
        raise UsageError(f"capture_enabled_for_nc of NeuronConfig is '{text}': give cores as '0,1,2-5'.")
    return text


class NeuronProfiler:
    """Writes PyTorch's trace where the device's profile of the same window is.

    Args:
        config: That of the `torch.profiler.profile`.
    """

    def __init__(self, config: NeuronConfig) -> None:
        self.config = config

    def export_trace(self, profiler: torch.profiler.profile) -> None:
        """Write `trace.json`; for `on_trace_ready`."""
        folder = _folders.get(profiler) or _new_folder(self.config)
        profiler.export_chrome_trace(str(folder / FRAMEWORK_TRACE))


_folders: WeakKeyDictionary[_KinetoProfile, Path] = WeakKeyDictionary()
"""Of each profiler's last window."""
_recordings: WeakKeyDictionary[_KinetoProfile, AbstractContextManager[Any]] = WeakKeyDictionary()


def _new_folder(config: NeuronConfig) -> Path:
    time = datetime.now().strftime("%Y%m%d_%H%M%S_%f")
    folder = config.profile_output_dir / f"{socket.gethostname()}_pid_{os.getpid()}" / time
    folder.mkdir(parents=True)
    return folder


def _begin(profiler: _KinetoProfile) -> None:
    """Record the device from now on where the profiler's configuration asks for it."""
    config = profiler.experimental_config
    if not isinstance(config, NeuronConfig):
        return
    _folders[profiler] = folder = _new_folder(config)
    samples = not {ProfileMode.CPU_UTIL, ProfileMode.HOST_MEMORY}.isdisjoint(config.modes)
    target = torch.neuron.get_device_properties().target
    record: Any = neuron_tools.profile  # a package that can be called
    recording: AbstractContextManager[Any] = record(folder / DEVICE_PROFILE, target, host_samples=samples)
    try:
        recording.__enter__()
    except AlreadyRecordedError:
        return
    _recordings[profiler] = recording


def _end(profiler: _KinetoProfile) -> None:
    if recording := _recordings.pop(profiler, None):
        recording.__exit__(None, None, None)


@wraps(_KinetoProfile.start_trace)
def _start_trace(self: _KinetoProfile) -> None:
    _begin(self)
    _original_start(self)


@wraps(_KinetoProfile.stop_trace)
def _stop_trace(self: _KinetoProfile) -> None:
    try:
        _original_stop(self)
    finally:
        _end(self)


_original_start, _original_stop = _KinetoProfile.start_trace, _KinetoProfile.stop_trace
_KinetoProfile.start_trace, _KinetoProfile.stop_trace = _start_trace, _stop_trace
