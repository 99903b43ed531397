"""What programs use of `torch_xla.utils.utils`: made-up samples, environment variables, free ports."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any


class SampleGenerator:
    """Gives the same batch again and again.

    Args:
        data: The batch.
        sample_count: How often.
    """

    def __init__(self, data: Any, sample_count: int) -> None:
        self._data = data
        self._sample_count = sample_count

    def __iter__(self) -> Iterator[Any]:
        return iter(self._data for _ in range(self._sample_count))

    def __len__(self) -> int:
        return self._sample_count


def getenv_as(name: str, type: Callable[[str], Any], defval: Any = None) -> Any:
    """An environment variable as a number, a text or a truth value; a default where it is not set."""
    text = os.environ.get(name)
    if text is None:
        return defval
    return text.lower() in ("1", "true", "yes") if type is bool else type(text)


def get_free_tcp_ports(num_ports: int = 1) -> list[int]:
    """Ports that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(num_ports)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
