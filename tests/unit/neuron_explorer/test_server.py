import socket

import pytest

from neuron_explorer.server import Place, access_to, serve
from neuron_tools.listening import OpenAddressError


def test_other_machines_need_a_token(tmp_path) -> None:
    with pytest.raises(OpenAddressError, match="give --token-file"):
        serve((tmp_path,), Place(0, "0.0.0.0"), open_browser=False)


def test_a_given_token_and_a_proxy_let_in() -> None:
    access = access_to(Place(0, "0.0.0.0", "secret", ("https://explorer.example",)), 3001)
    assert access.url == f"http://{socket.gethostname()}:3001/?token=secret"
    assert {"explorer.example", "localhost:3001"} <= access.hosts
    assert "https://explorer.example" in access.origins
    assert access_to(Place(0), 3001).token != access_to(Place(0), 3001).token
