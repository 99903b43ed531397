"""The HTTP server to which Prometheus, its Alertmanager, or `neuron-monitor watch` sends alerts."""

from __future__ import annotations

import hmac
import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import Full, Queue
from threading import Thread

from neuron_profile.launch.alerts.cause import prepare
from neuron_profile.launch.alerts.responder import Alarm, Responder, alarms_in
from neuron_tools.errors import NeuronToolsError
from neuron_tools.listening import require_token

MOST_BYTES = 1 << 20
MOST_WAITING = 64
TIMEOUT_S = 10.0
PATH = "/alerts"
# Where Prometheus sends its alerts if this is one of its Alertmanagers.
PROMETHEUS_PATH = "/api/v2/alerts"


class AlertServer(HTTPServer):
    """Takes alerts at once, and has them answered one after the other.

    Raises:
        OpenAddressError: The address is open to others, and there is no token.
        NeuronToolsError: It cannot be listened on.
    """

    def __init__(self, responder: Responder, address: str, port: int, token: str | None) -> None:
        require_token(address, token)
        self.token = token
        self.waiting: Queue[list[Alarm]] = Queue(MOST_WAITING)
        self._responder = responder
        try:
            super().__init__((address, port), AlertHandler)
        except OSError as error:
            raise NeuronToolsError(
                f"{address} port {port} cannot be listened on: {error.strerror}."
            ) from error
        Thread(target=self._answer_all, name="responder", daemon=True).start()

    def _answer_all(self) -> None:
        prepare()
        while True:
            alarms = self.waiting.get()
            try:
                self._responder.answer(alarms)
            except OSError as error:
                self._responder.say(f"The alert could not be answered: {error.strerror or error}.")


class AlertHandler(BaseHTTPRequestHandler):
    """One request."""

    server: AlertServer
    timeout = TIMEOUT_S
    server_version = "neuron-profile"
    sys_version = ""

    def do_POST(self) -> None:
        """Take a message with alerts."""
        if self.path not in (PATH, PROMETHEUS_PATH):
            self._end(HTTPStatus.NOT_FOUND, f"Alerts are sent to {PATH}.")
        elif self.headers.get("Origin") is not None:  # browsers send it, whatever site the page is of
            self._end(HTTPStatus.FORBIDDEN, "Alerts come from programs, not from web pages.")
        elif not self._may():
            self._end(HTTPStatus.UNAUTHORIZED, "The token is missing or wrong.")
        elif not 0 < (length := self._length()) <= MOST_BYTES:
            self._end(HTTPStatus.BAD_REQUEST, f"A message has 1 to {MOST_BYTES} bytes.")
        else:
            self._take(self.rfile.read(length))

    def _take(self, content: bytes) -> None:
        try:
            self.server.waiting.put_nowait(alarms_in(json.loads(content)))
        except (ValueError, RecursionError):
            self._end(HTTPStatus.BAD_REQUEST, "The message is none of Alertmanager's.")
        except Full:
            self._end(HTTPStatus.SERVICE_UNAVAILABLE, "Too many alerts wait: try again later.")
        else:
            self._end(HTTPStatus.ACCEPTED, "Taken.")

    def _length(self) -> int:
        told = self.headers.get("Content-Length", "")
        return int(told) if told.isascii() and told.isdigit() and len(told) < 12 else 0

    def _may(self) -> bool:
        given = self.headers.get("Authorization", "")
        wanted = f"Bearer {self.server.token}"
        return self.server.token is None or hmac.compare_digest(given.encode(), wanted.encode())

    def _end(self, status: HTTPStatus, sentence: str) -> None:
        content = f"{sentence}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Requests are no news."""
