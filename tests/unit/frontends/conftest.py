"""A device that only takes notes, for tests of hooks and compiled graphs on CPU tensors."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from neuron_tools.records.capture_log import RecordKind


@dataclass
class NotingDevice:
    """The part of `neuron_tools.device.native` that front ends call; time is a counter."""

    log: list[tuple] = field(default_factory=list)
    spans: list[tuple[str, int, int]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    modules: list[tuple[str, str]] = field(default_factory=list)
    module: int = 0
    in_optimizer: bool = False
    suppressed: bool = False
    time_ns: int = 0

    def define_module(self, path, class_name):
        self.modules.append((path, class_name))
        return len(self.modules)

    def set_module(self, module):
        previous, self.module = self.module, module
        return previous

    def name_module(self, module, text):
        assert self.modules[module - 1][0] == text

    def set_optimizer(self, active):
        previous, self.in_optimizer = self.in_optimizer, active
        return previous

    def suppress(self, suppressed):
        previous, self.suppressed = self.suppressed, suppressed
        return previous

    def pause_clock(self):
        return 0

    def resume_clock(self):
        return 0

    def host_now_ns(self):
        self.time_ns += 1
        return self.time_ns

    def intern_name(self, name):
        self.names.append(name)
        return len(self.names)

    def mark_boundary(self):
        """Nothing is fused here."""

    def record_range(self, name_id, start_ns, end_ns, kind):
        assert start_ns <= end_ns
        name = self.names[name_id - 1] if name_id else self.path
        self.log.append((RecordKind(kind).name, name))
        self.spans.append((name, start_ns, end_ns))

    def run_graph(self, executable_id, duration_ns, name_id, name=""):
        assert not self.suppressed
        self.log.append(("GRAPH", executable_id, duration_ns))

    @property
    def path(self):
        return self.modules[self.module - 1][0] if self.module else ""

    def logged(self, kind):
        """What was logged of a kind, in order."""
        return [entry[1] for entry in self.log if entry[0] == kind]


@pytest.fixture
def device():
    return NotingDevice()
