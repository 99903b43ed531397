"""Which machine this is: EC2's instance metadata where it answers, else the firmware's tables.

Nothing waits for the metadata service: it is asked in the background, and only where the firmware says EC2.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from neuron_monitor.api.nodes import first_line
from neuron_tools.frozen import frozen

METADATA_ADDRESS = "http://169.254.169.254"
FIRMWARE_FOLDER = "/sys/devices/virtual/dmi/id"
TOKEN_LIFETIME_S = 300
TIMEOUT_S = 2.0
UNKNOWN = "unknown"
SIMULATED = "simulated"


@frozen
class InstanceFacts:
    """What identifies an EC2 instance; "" where not known."""

    type: str = UNKNOWN
    id: str = UNKNOWN
    name: str = ""
    availability_zone: str = ""
    availability_zone_id: str = ""
    region: str = ""
    ami_id: str = ""
    subnet_id: str = ""
    error: str = ""


class Instance:
    """The facts of this machine, which get better when the metadata service has answered.

    Args:
        firmware: Folder of the firmware's tables.
        ask: Asks the metadata service; may block, and raise `OSError`.
    """

    def __init__(
        self,
        firmware: str = FIRMWARE_FOLDER,
        ask: Callable[[InstanceFacts], InstanceFacts] | None = None,
    ) -> None:
        self._ask = ask or ask_metadata_service
        self._facts, is_ec2 = read_firmware(firmware)
        self._simulated: InstanceFacts | None = None
        self._answered = threading.Event()
        if is_ec2:
            threading.Thread(target=self._complete, name="instance-metadata", daemon=True).start()
        else:
            self._answered.set()

    def facts(self, simulated_type: str = "") -> InstanceFacts:
        """What is known now; a simulated driver's instance type stands above the host's.

        It still does when no program runs on the simulated device any more: series keep their labels.
        """
        if simulated_type and (self._simulated is None or self._simulated.type != simulated_type):
            self._simulated = InstanceFacts(type=simulated_type, id=SIMULATED)
        return self._simulated or self._facts

    def wait(self, longest_s: float = TIMEOUT_S) -> None:
        """Wait until nothing more will be known: for what carries the facts as labels from the start."""
        self._answered.wait(longest_s)

    def _complete(self) -> None:
        try:
            self._facts = self._ask(self._facts)
        except (OSError, ValueError) as error:
            self._facts = replace(self._facts, error=f"instance metadata: {error}")
        finally:
            self._answered.set()


def read_firmware(folder: str = FIRMWARE_FOLDER) -> tuple[InstanceFacts, bool]:
    """Instance type and id as EC2's firmware tells them, and whether this is EC2."""
    if first_line(f"{folder}/sys_vendor") != "Amazon EC2":
        return InstanceFacts(), False
    kind, identity = first_line(f"{folder}/product_name"), first_line(f"{folder}/board_asset_tag")
    return InstanceFacts(type=kind or UNKNOWN, id=identity if identity.startswith("i-") else UNKNOWN), True


def ask_metadata_service(known: InstanceFacts, address: str = METADATA_ADDRESS) -> InstanceFacts:
    """Ask the instance metadata service, version 2 (EC2 user guide, "Use IMDS").

    Raises:
        OSError: It does not answer.
    """
    token = _request(
        f"{address}/latest/api/token",
        method="PUT",
        headers={"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_LIFETIME_S)},
    )

    def get(path: str) -> str:
        try:
            return _request(
                f"{address}/latest/meta-data/{path}", headers={"X-aws-ec2-metadata-token": token}
            ).strip()
        except OSError:
            return ""

    mac = get("mac")
    return replace(
        known,
        type=get("instance-type") or known.type,
        id=get("instance-id") or known.id,
        name=get("tags/instance/Name"),
        availability_zone=get("placement/availability-zone"),
        availability_zone_id=get("placement/availability-zone-id"),
        region=get("placement/region"),
        ami_id=get("ami-id"),
        subnet_id=get(f"network/interfaces/macs/{mac}/subnet-id") if mac else "",
    )


def _request(url: str, *, method: str = "GET", headers: dict[str, str]) -> str:
    # Imported here: the metadata service is asked once, in the background, and only on EC2.
    from urllib.request import ProxyHandler, Request, build_opener

    opener = build_opener(ProxyHandler({}))
    with opener.open(Request(url, method=method, headers=headers), timeout=TIMEOUT_S) as answer:
        text: str = answer.read(4096).decode("utf-8", "replace")
        return text
