"""The process that rehearses edits: started by the first, asked by many threads, replaced when lost."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import Future, TimeoutError as LateError
from threading import Lock, Thread
from typing import Any

from neuron_tools.errors import NeuronToolsError

Answer = dict[str, Any]
COMMAND = (sys.executable, "-m", "neuron_profile.preview")
_PATIENCE_S = 120.0


class PreviewFailedError(NeuronToolsError):
    """An edit could not be rehearsed."""


class PreviewProcess:
    """One `python -m neuron_profile.preview`. It ends with this process, whose pipe it reads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._waiting: dict[int, Future[Answer]] = {}
        self._count = 0

    def ask(self, **request: Any) -> Future[Answer]:
        """Send a request (`neuron_profile.preview.request.Request`); of edits, the last one is answered."""
        future: Future[Answer] = Future()
        with self._lock:
            process = self._running()
            self._count += 1
            self._waiting[self._count] = future
            assert process.stdin is not None
            try:
                process.stdin.write(json.dumps({"number": self._count, **request}) + "\n")
                process.stdin.flush()
            except OSError:
                self._lose()
        return future

    @staticmethod
    def answer_of(future: Future[Answer]) -> Answer:
        """What was answered.

        Raises:
            PreviewFailedError: The process is gone, or it takes too long.
        """
        try:
            answer = future.result(_PATIENCE_S)
        except LateError:
            raise PreviewFailedError("Simulating the edit takes too long.") from None
        if "error" in answer:
            raise PreviewFailedError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            Thread(target=self._listen, args=(self._process,), daemon=True).start()
        return self._process

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            answer: Answer = json.loads(line)
            with self._lock:
                future = self._waiting.pop(answer.pop("number"), None)
            if future is not None:
                future.set_result(answer)
        with self._lock:
            if self._process in (process, None):
                self._lose()

    def _lose(self) -> None:
        """Nobody answers any more what was asked."""
        for future in self._waiting.values():
            future.set_result({"error": "The process that simulates edits ended."})
        self._waiting.clear()
        self._process = None
