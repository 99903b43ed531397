"""`python -m neuron_profile.preview`: rehearses edits for an editor's server, one JSON line for each.

Each request is answered in a fork of this process, which has imported and compiled what takes long, so that
no request sees what another's code left behind. A newer request ends the one under way; so does the end of
standard input, and a deadline.
"""

from __future__ import annotations

import importlib.util
import json
import os
import selectors
import signal
import sys
import tempfile
import time
from typing import Any

from neuron_profile.preview.request import Request, answer, confine
from neuron_tools.frozen import frozen

DEADLINE_S = 60.0
_NEEDED_WITH = {
    "torch": (
        "neuron_tools.capture.runtimes.torch_runtime",
        "neuron_tools.frontends.executables",
        "neuron_tools.frontends.torch_eager.operation",
        "neuron_tools.frontends.torch_hooks.installation",
        "neuron_tools.frontends.torch_lowering.lowering",
    )
}
"""What running a framework's modules takes seconds to import."""
_LINE = 1 << 16


@frozen
class _Child:
    """A fork that answers a request; its pipe is ready when it has."""

    number: int
    process_id: int
    pipe: int
    until: float
    is_edit: bool


def warm() -> None:
    """Import and compile what every request needs: the first simulation takes seconds, the others do not."""
    import numpy as np

    import neuron_tools.nki.isa as nisa
    import neuron_tools.nki.language as nl
    import neuron_tools.profile.timeline.builder  # noqa: F401  closing a profile needs it
    from neuron_tools.nki.kernel import jit
    from neuron_tools.nki.timing import time_kernel

    def copy(a: Any) -> Any:
        result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=a)
        nisa.activation(dst=tile, op=nl.exp, data=tile)
        nisa.dma_copy(dst=result, src=tile)
        return result

    time_kernel(jit(copy), (np.zeros((128, 128), np.float32),), {}, False)


class Server:
    """Answers requests of standard input on standard output."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        self._buffer = b""
        self._waiting: list[dict[str, Any]] = []
        self._child: _Child | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="neuron-preview-")

    def serve(self) -> None:
        """Until standard input ends."""
        while True:
            timeout = max(0.0, self._child.until - time.monotonic()) if self._child else None
            ready = [key.fd for key, _ in self._selector.select(timeout)]
            if self._child and (self._child.pipe in ready or not ready):
                self._finish(late=not ready)
            if sys.stdin.fileno() in ready and not self._read():
                self._drop("")
                self._folder.cleanup()
                return
            if self._child is None and self._waiting:
                self._begin(self._waiting.pop(0))

    def _read(self) -> bool:
        """Take in what was written; the last request for an edited text replaces those before it."""
        data = os.read(sys.stdin.fileno(), _LINE)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if request["text"] is not None:
                for older in [each for each in self._waiting if each["text"] is not None]:
                    self._waiting.remove(older)
                    _say({"number": older["number"], "superseded": True})
                if self._child is not None and self._child.is_edit:
                    self._drop("superseded")
            self._waiting.append(request)
        return bool(data)

    def _begin(self, request: dict[str, Any]) -> None:
        _preload(request.pop("modules", ()))
        number, is_edit = request.pop("number"), request["text"] is not None
        folder = os.path.join(self._folder.name, str(number))
        os.mkdir(folder)
        reading, writing = os.pipe()
        process_id = os.fork()
        if process_id == 0:
            os.close(reading)
            _answer_in_fork(Request(**request, folder=folder), writing)
        os.close(writing)
        self._selector.register(reading, selectors.EVENT_READ)
        self._child = _Child(number, process_id, reading, time.monotonic() + DEADLINE_S, is_edit)

    def _finish(self, late: bool) -> None:
        child = self._child
        assert child is not None
        if late:
            os.kill(child.process_id, signal.SIGKILL)
        data = b""
        while part := os.read(child.pipe, _LINE):
            data += part
        self._forget(child)
        failure = "It takes too long to simulate." if late else "The edited code ended its process."
        _say({"number": child.number, **(json.loads(data) if data and not late else {"error": failure})})

    def _drop(self, why: str) -> None:
        """End what is under way."""
        if self._child is None:
            return
        child = self._child
        os.kill(child.process_id, signal.SIGKILL)
        self._forget(child)
        if why:
            _say({"number": child.number, why: True})

    def _forget(self, child: _Child) -> None:
        self._selector.unregister(child.pipe)
        os.close(child.pipe)
        os.waitpid(child.process_id, 0)
        self._child = None


def _answer_in_fork(request: Request, pipe: int) -> None:
    try:
        confine()
        try:
            said = answer(request)
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        with os.fdopen(pipe, "wb") as out:
            out.write(json.dumps(said).encode())
    finally:
        os._exit(0)


def _preload(modules: list[str]) -> None:
    """Import frameworks that the captured files use, once, before the fork."""
    for name in modules:
        if name not in sys.modules and importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
            for needed in _NEEDED_WITH.get(name, ()):
                importlib.import_module(needed)


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Get ready, then serve."""
    warm()
    Server().serve()


if __name__ == "__main__":
    main()
