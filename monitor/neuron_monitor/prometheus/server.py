"""The HTTP server that Prometheus scrapes. Beyond this machine it answers only to who knows the token."""

from __future__ import annotations

import hmac
import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from neuron_monitor.errors import ListenError
from neuron_monitor.prometheus.exporter import Exporter
from neuron_monitor.prometheus.exposition import CONTENT_TYPE
from neuron_tools.listening import is_loopback, require_token

SCRAPES_AT_ONCE = 16
REQUEST_TIMEOUT_S = 10.0
METRICS_PATHS = ("/metrics", "/")
HEALTH_PATH = "/healthz"


class MetricsServer(ThreadingHTTPServer):
    """Serves an exporter's text; more than 16 requests at once are turned away, not queued.

    Args:
        address: Where to listen; a name that stands for this machine only, unless there is a token.
        port: 0 for any.
        token: What a scrape must carry as `Authorization: Bearer TOKEN`; None for no check.

    Raises:
        OpenAddressError: The address is open to others, and there is no token.
        ListenError: It cannot be listened on.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, exporter: Exporter, address: str, port: int, token: str | None = None) -> None:
        require_token(address, token)
        self.exporter = exporter
        self.token = token
        self._slots = threading.BoundedSemaphore(SCRAPES_AT_ONCE)
        if ":" in address:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((address, port), MetricsHandler)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ListenError(f"{address} port {port} cannot be listened on: {reason}.") from error

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, or at once that there is no room."""
        if not self._slots.acquire(blocking=False):
            self._turn_away(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # No thread could be started.
            self._slots.release()
            self._turn_away(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room again."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""

    def _turn_away(self, request: Any) -> None:
        try:
            request.settimeout(1)
            request.sendall(
                b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
            )
        except OSError:
            pass
        self.shutdown_request(request)


class MetricsHandler(BaseHTTPRequestHandler):
    """One request."""

    server: MetricsServer
    protocol_version = "HTTP/1.1"
    timeout = REQUEST_TIMEOUT_S
    server_version = "neuron-monitor"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with the metrics."""
        path = self.path.partition("?")[0]
        if path == HEALTH_PATH:
            self._answer(HTTPStatus.OK, b"ok\n", "text/plain")
        elif path not in METRICS_PATHS:
            self._answer(HTTPStatus.NOT_FOUND, b"The metrics are at /metrics.\n", "text/plain")
        elif self.server.token is None and not is_loopback(_host_name(self.headers.get("Host", ""))):
            self._answer(HTTPStatus.FORBIDDEN, b"Ask for 127.0.0.1 or localhost.\n", "text/plain")
        elif not self._carries_token():
            self._answer(HTTPStatus.UNAUTHORIZED, b"A bearer token is needed.\n", "text/plain")
        else:
            compressed = "gzip" in self.headers.get("Accept-Encoding", "")
            body = self.server.exporter.text(compressed=compressed)
            self._answer(HTTPStatus.OK, body, CONTENT_TYPE, compressed=compressed)

    def do_HEAD(self) -> None:
        """Answer without the text."""
        self.do_GET()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Scrapes are not logged."""

    def _carries_token(self) -> bool:
        """Whether the request carries the token, where there is one.

        Without a token the server is on this machine only, where a page of another site in the user's browser
        could still ask in the name of a host of its own: such names are refused before.
        """
        if self.server.token is None:
            return True
        given = self.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {self.server.token}".encode())

    def _answer(self, status: HTTPStatus, body: bytes, kind: str, *, compressed: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        if compressed:
            self.send_header("Content-Encoding", "gzip")
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _host_name(header: str) -> str:
    """The name in a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.rpartition(":")[0] if ":" in header else header
