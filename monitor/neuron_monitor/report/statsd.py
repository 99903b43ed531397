"""Reports as StatsD's lines over UDP, with tags as DogStatsD and Telegraf read them.

Source: Datadog's documentation, "Datagram Format and Shell Usage": `NAME:VALUE|TYPE|#LABEL:VALUE,...`.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Iterator

from neuron_monitor.report.measurements import Measurement, measurements
from neuron_monitor.report.reporter import Report
from neuron_tools.errors import UsageError

PREFIX = "neuron."
ADDRESS_VARIABLE = "STATSD_ADDRESS"
DEFAULT_ADDRESS = "127.0.0.1:8125"
# What an Ethernet packet holds besides its headers, with room for those of tunnels.
MOST_BYTES_OF_A_DATAGRAM = 1432
_NOT_IN_A_TAG = re.compile(r"[|,#:\s]+")


class StatsD:
    """Sends each report to the server at `$STATSD_ADDRESS`, or to that of this machine.

    A server that is not there loses what is sent; the monitor goes on.

    Raises:
        UsageError: The address has no port, or nobody knows it.
    """

    def __init__(self) -> None:
        told = os.environ.get(ADDRESS_VARIABLE) or DEFAULT_ADDRESS
        host, _, port = told.rpartition(":")
        if not host or not port.isdigit():
            raise UsageError(f"{ADDRESS_VARIABLE}={told} is no address: write it like {DEFAULT_ADDRESS}.")
        try:
            found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
        except (OSError, OverflowError) as error:
            raise UsageError(f"{ADDRESS_VARIABLE}={told} is not known here: {error}.") from error
        self._address = found[0][4]
        self._socket = socket.socket(found[0][0], socket.SOCK_DGRAM)

    def write(self, report: Report) -> None:
        """Send one report."""
        for datagram in datagrams(map(line, measurements(report))):
            try:
                self._socket.sendto(datagram, self._address)
            except OSError:
                return  # Nobody is there, or the network is down: the next report is tried again.


def line(measurement: Measurement) -> bytes:
    """One measurement: a counter where it was added since the last report, else a gauge."""
    kind = "c" if measurement.is_added else "g"
    tags = ",".join(f"{name}:{_NOT_IN_A_TAG.sub('_', value)}" for name, value in measurement.labels.items())
    text = f"{PREFIX}{measurement.name}:{measurement.value:.15g}|{kind}"
    return f"{text}|#{tags}".encode() if tags else text.encode()


def datagrams(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines in as few datagrams as hold them."""
    held = b""
    for each in lines:
        if held and len(held) + 1 + len(each) > MOST_BYTES_OF_A_DATAGRAM:
            yield held
            held = b""
        held = held + b"\n" + each if held else each
    if held:
        yield held
