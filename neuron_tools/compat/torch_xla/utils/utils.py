"""What programs use of `torch_xla.utils.utils`: made-up samples, environment variables, times, free ports."""

from __future__ import annotations

import os
import socket
import time
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


def check_env_flag(name: str, default: str = "") -> bool:
    """Whether an environment variable is "true" or a number above 0."""
    flag = os.environ.get(name, default)
    return flag == "true" or (flag.isdigit() and int(flag) > 0)


def as_list(value: Any) -> list[Any]:
    """A tuple or list as a list; anything else as one of it."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def timed(fn: Callable[[], Any], msg: str = "", printfn: Callable[[str], Any] | None = print) -> Any:
    """What a function gives; how long it took is printed."""
    with TimedScope(msg, printfn):
        return fn()


class TimedScope:
    """A block; how long it took is printed at its end.

    Args:
        msg: What stands before it.
        printfn: Prints it; None: nothing is.
    """

    def __init__(self, msg: str = "", printfn: Callable[[str], Any] | None = print) -> None:
        self._message, self._print = msg, printfn
        self._started = 0.0

    def __enter__(self) -> TimedScope:
        self._started = time.perf_counter()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._print is not None:
            self._print(f"{self._message}{time.perf_counter() - self._started:.3f}s")


def get_free_tcp_ports(num_ports: int = 1) -> list[int]:
    """Ports that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(num_ports)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
