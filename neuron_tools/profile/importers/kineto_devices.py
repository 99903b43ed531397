"""Which processes and threads of a torch.profiler trace are devices and streams, told by the work on them.

Labels such as `GPU 0` may be missing: tools that filter or join traces drop them. Kernels, copies and fills
say by their category and by `args.device` that they ran on a device.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neuron_tools.profile.importers.distinct import distinct_rows
from neuron_tools.profile.importers.json_rows import JsonRows
from neuron_tools.profile.store.recorded import text_codes

WORK = frozenset({"kernel", "Kernel", "gpu_memcpy", "gpu_memset", "Memcpy", "Memset", "concurrent_kernel"})
"""Categories of what runs on a device."""
_BESIDE = frozenset({"gpu_user_annotation", "cuda_sync", "overhead", "Trace", "ac2g", "fwdbwd", "async_gpu"})
"""Categories that stand on devices and on the host."""
_OF_PYTHON = frozenset({"cpu_op", "python_function", "user_annotation"})
"""Categories that only the host's threads have."""
_OF_RUNTIMES = ("_runtime", "_driver")
"""Ends of the categories of calls that launch work."""
_UNKNOWN = -1
_MOST_DEVICES = 1 << 10


class KernelPlaces:
    """Gathers where kernels stand, and where the host's spans do; texts are as the file spells them."""

    def __init__(self) -> None:
        self._streams: dict[tuple[str, str], int] = {}
        self._hosts: set[str] = set()
        self._threads: set[tuple[str, str]] = set()
        self._launching: set[str] = set()

    def add(self, rows: JsonRows, devices: pa.Array) -> None:
        """Looks through complete events; `devices`, int64, is `args.device` of each."""
        categories = rows.texts("cat")
        texts = categories.dictionary.to_pylist()
        codes = text_codes(categories)
        is_work = np.array([*(text in WORK for text in texts), False])[codes]
        is_host = ~np.array([*(text in WORK or text in _BESIDE for text in texts), True])[codes]
        pids = rows.spelled("pid")
        names = pids.dictionary.to_pylist()
        self._hosts.update(names[code] for code in np.unique(text_codes(pids)[is_host]).tolist() if code >= 0)
        is_call = np.array([*(text.endswith(_OF_RUNTIMES) for text in texts), False])[codes]
        self._launching.update(
            names[code] for code in np.unique(text_codes(pids)[is_call]).tolist() if code >= 0
        )
        if is_work.any():
            self._add_work(rows.take(is_work), devices.filter(pa.array(is_work)))
        is_python = np.array([*(text in _OF_PYTHON for text in texts), False])[codes]
        if is_python.any():
            self._add_threads(rows.take(is_python))

    def device_of(self, pid: str) -> int | None:
        """Device that a process stands for: kernels are on it and nothing of the host."""
        if pid in self._hosts:
            return None
        own = {device for (process, _), device in self._streams.items() if process == pid}
        return self._known(pid, own.pop()) if len(own) == 1 else None

    def device_of_thread(self, pid: str, tid: str) -> int | None:
        """Device that a thread is a stream of."""
        device = self._streams.get((pid, tid))
        return None if device is None else self._known(pid, device)

    def launches(self, pid: str) -> bool:
        """Whether a process calls a device's runtime."""
        return pid in self._launching

    def is_host_thread(self, pid: str, tid: str) -> bool:
        """Whether a thread holds the host's operators or Python and nothing that ran on a device."""
        return (pid, tid) in self._threads and (pid, tid) not in self._streams

    def _known(self, pid: str, device: int) -> int:
        """The device's number; the process's where the kernels do not tell it."""
        if device != _UNKNOWN:
            return device
        is_number = pid.isdecimal() and len(pid) < 5 and pid not in self._hosts
        return int(pid) if is_number and int(pid) < _MOST_DEVICES else 0

    def _add_threads(self, rows: JsonRows) -> None:
        pids, tids = rows.spelled("pid"), rows.spelled("tid")
        found, _ = distinct_rows(text_codes(pids), text_codes(tids))
        process_of, thread_of = pids.dictionary.to_pylist(), tids.dictionary.to_pylist()
        self._threads.update(
            (process_of[pid], thread_of[tid]) for pid, tid in found.tolist() if pid >= 0 and tid >= 0
        )

    def _add_work(self, rows: JsonRows, devices: pa.Array) -> None:
        pids, tids = rows.spelled("pid"), rows.spelled("tid")
        known = devices.fill_null(_UNKNOWN).to_numpy(zero_copy_only=False).astype(np.int64)
        found, _ = distinct_rows(text_codes(pids), text_codes(tids), known)
        process_of, thread_of = pids.dictionary.to_pylist(), tids.dictionary.to_pylist()
        for pid, tid, device in found.tolist():
            if pid >= 0 and tid >= 0 and _UNKNOWN <= device < _MOST_DEVICES:
                key = process_of[pid], thread_of[tid]
                self._streams[key] = max(device, self._streams.get(key, _UNKNOWN))
