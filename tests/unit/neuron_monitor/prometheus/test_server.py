import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import pytest

from neuron_monitor.errors import ListenError
from neuron_monitor.prometheus.server import SCRAPES_AT_ONCE, MetricsServer
from neuron_tools.listening import OpenAddressError

PATIENCE_S = 60


class Texts:
    """An exporter of one text, which can be held back."""

    def __init__(self):
        self.may_go = threading.Event()
        self.may_go.set()
        self.asked = threading.Semaphore(0)

    def text(self, *, compressed=False):
        self.asked.release()
        self.may_go.wait(PATIENCE_S)
        return b"packed" if compressed else b"spam 1\n"


@pytest.fixture
def serve():
    servers = []

    def make(token=None):
        texts = Texts()
        server = MetricsServer(texts, "127.0.0.1", 0, token)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return server, texts

    yield make
    for server in servers:
        server.shutdown()
        server.server_close()


def get(server, path="/metrics", **headers):
    connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_metrics_and_health(serve):
    server, _ = serve()
    assert get(server) == (200, b"spam 1\n")
    assert get(server, "/") == (200, b"spam 1\n")
    assert get(server, "/healthz") == (200, b"ok\n")
    assert get(server, "/etc/passwd")[0] == 404


def test_who_can_unpack_gets_it_packed(serve):
    assert get(serve()[0], **{"Accept-Encoding": "gzip, deflate"}) == (200, b"packed")


@pytest.mark.parametrize(
    "given", [None, "Bearer wrong", "Bearer ", "secret", "Basic secret", "Bearer sécret"]
)
def test_without_the_token_nothing_is_told(serve, given):
    server, _ = serve("secret")
    headers = {} if given is None else {"Authorization": given.encode("utf-8")}
    assert get(server, **headers)[0] == 401


def test_with_the_token_any_name_of_the_host_is_answered(serve):
    server, _ = serve("secret")
    assert get(server, Authorization="Bearer secret", Host="node-7:8000")[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "", "[::ffff"])
def test_without_a_token_only_this_machines_own_names_are_answered(serve, host):
    assert get(serve()[0], Host=host)[0] == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9", "[::1]:8000"])
def test_this_machines_names(serve, host):
    assert get(serve()[0], Host=host)[0] == 200


def test_a_storm_of_scrapes_is_turned_away_not_queued(serve):
    server, texts = serve()
    texts.may_go.clear()
    with ThreadPoolExecutor(64) as pool:
        held = [pool.submit(get, server) for _ in range(SCRAPES_AT_ONCE)]
        for _ in held:
            assert texts.asked.acquire(timeout=PATIENCE_S)
        refused = [pool.submit(get, server) for _ in range(20)]
        assert {each.result()[0] for each in refused} == {503}
        texts.may_go.set()
        assert {each.result()[0] for each in held} == {200}
    while get(server)[0] != 200:  # An answer arrives before there is room for the next one.
        pass


@pytest.mark.parametrize("address", ["0.0.0.0", "10.1.2.3", "::"])
def test_an_address_for_others_needs_a_token(address):
    with pytest.raises(OpenAddressError, match="--token-file"):
        MetricsServer(Texts(), address, 0)


def test_a_port_that_is_taken_is_told(serve):
    server, _ = serve()
    with pytest.raises(ListenError, match=f"port {server.port}"):
        MetricsServer(Texts(), "127.0.0.1", server.port)
