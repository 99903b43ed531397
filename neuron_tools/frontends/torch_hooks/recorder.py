"""What the hooks need of the device's recorder."""

from __future__ import annotations

from typing import Protocol


class HostRecorder(Protocol):
    """The part of `neuron_tools.device.native` that hooks call."""

    def set_module(self, module: int) -> int:
        """Make `module` the calling thread's current module (0: none); returns the previous one."""

    def name_module(self, module: int, text: str) -> None:
        """Tell a module's path, for tables of who holds memory."""

    def set_optimizer(self, active: bool) -> bool:
        """Mark the calling thread's operations as an optimizer's; returns the previous mark."""

    def intern_name(self, name: str) -> int:
        """The number that stands for a name in records."""

    def host_now_ns(self) -> int:
        """Virtual host time in ns."""

    def mark_boundary(self) -> None:
        """Let no fused execution reach over this moment."""

    def record_range(self, name_id: int, start_ns: int, end_ns: int, kind: int) -> None:
        """Append a closed host range of the calling thread in its module; `kind` is a `RecordKind`."""
