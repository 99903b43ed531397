"""Operations under way: what torch.distributed's Work objects ask."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from neuron_tools.device import native
from neuron_tools.device.distributed.call import Call
from neuron_tools.device.distributed.extension import extension


class Operation:
    """A collective of this rank, from its issue to its values.

    Attributes:
        completion: Its future, which the C++ back end hands out.
        source: Rank that a received message came from; -1 where there is none.
        end_ns: This rank's virtual time of its end; None where it is not timed.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        devices = [tensor.device for tensor in call.outputs[:1] if tensor.device.type != "cpu"]
        self.completion: Any = extension().Completion(list(call.outputs), devices, call.lists)
        self.source = -1
        self.end_ns: int | None = None
        self._done = threading.Event()

    def is_completed(self) -> bool:
        """Whether its values are there, or it failed."""
        return self._done.is_set()

    def succeed(self, end_ns: int | None) -> None:
        """Its values are there. Whoever waits for the future waits until `end_ns` of virtual time."""
        self.end_ns = end_ns
        before = native.set_event_time(-1 if end_ns is None else end_ns)
        try:
            self.completion.succeed()
        finally:
            native.set_event_time(before)
        self._done.set()

    def fail(self, message: str) -> None:
        """It failed; waiting for it raises this sentence."""
        self.completion.fail(message)
        self._done.set()

    def await_values(self, timeout_s: float = 0.0) -> None:
        """Wait for the values, outside virtual time.

        Args:
            timeout_s: 0: as long as the group's own timeout lasts.

        Raises:
            RuntimeError: They did not come in time.
        """
        if self._done.is_set():
            return
        with native.paused_clock():
            if not self._done.wait(timeout_s or None):
                raise RuntimeError(f"Wait timeout: {self.call.text} did not end within {timeout_s:g} s.")

    def wait(self, timeout_s: float = 0.0) -> None:
        """Wait: the current stream for its virtual end, the host for the values.

        Raises:
            RuntimeError: It failed, or did not end in time.
        """
        self.await_values(timeout_s)
        self.completion.wait()
        if self.end_ns is not None:
            self._hold_back(self.end_ns)

    def _hold_back(self, end_ns: int) -> None:
        device = self.call.device
        if device is not None:
            native.hold_stream(device, end_ns)
        if self.call.blocks_host or device is None:
            native.wait_host(int(native.core().current_device()) if device is None else device, end_ns)


class GroupedOperation(Operation):
    """Several operations that were issued together and are waited for together."""

    def __init__(self, call: Call, operations: Sequence[Operation]) -> None:
        super().__init__(call)
        self._operations = list(operations)

    def is_completed(self) -> bool:
        """Whether all are."""
        return all(operation.is_completed() for operation in self._operations)

    def await_values(self, timeout_s: float = 0.0) -> None:
        """Wait for the values of all."""
        for operation in self._operations:
            operation.await_values(timeout_s)
        ends = [each.end_ns for each in self._operations if each.end_ns is not None]
        if not self._done.is_set():
            self.succeed(max(ends, default=None))

    def wait(self, timeout_s: float = 0.0) -> None:
        """Wait for all.

        Raises:
            RuntimeError: One of them failed, or did not end in time.
        """
        for operation in self._operations:
            operation.wait(timeout_s)
        self.await_values()


class Lane:
    """Performs a group's collectives in the order of their issue, beside the caller.

    The thread starts with the first asynchronous operation; one that the caller waits for at once is
    performed on the caller's own thread where nothing else is under way.
    """

    def __init__(self, perform: Callable[[Any], None], name: str) -> None:
        self._perform = perform
        self._name = name
        self._waiting: list[Any] = []
        self._changed = threading.Condition()
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def submit(self, item: Any, *, inline: bool) -> None:
        """Perform an item after those before it.

        Args:
            inline: The caller waits for it at once.
        """
        with self._changed:
            inline = inline and not self._busy and not self._waiting
            if inline:
                self._busy = True
            else:
                self._waiting.append(item)
                self._ensure_thread()
                self._changed.notify_all()
        if inline:
            self._run(item)

    def close(self) -> None:
        """Let the thread end when it has done what waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _ensure_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: (self._waiting and not self._busy) or self._closed)
                if not self._waiting:
                    return
                if self._busy:
                    continue
                item = self._waiting.pop(0)
                self._busy = True
            self._run(item)

    def _run(self, item: Any) -> None:
        try:
            self._perform(item)
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
