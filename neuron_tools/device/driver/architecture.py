"""What the driver calls the generations in `info/architecture`.

Source: aws-neuron-driver, v1/neuron_dhal_v1.c, v2/neuron_dhal_v2.c, v3/neuron_dhal_v3.c, v4/neuron_dhal_v4.c.
"""

from __future__ import annotations

from neuron_tools.frozen import frozen


@frozen
class Architecture:
    """The texts of one generation's nodes."""

    device_type: str
    core_type: str
    instance_type: str
    device_name: str


_TRAINIUM1 = Architecture("NDv2", "NCv2", "Trn1", "Trainium1")
ARCHITECTURES = {
    "inf1": Architecture("NDv1", "NCv1", "Inf1", "Inferentia"),
    "inf2": Architecture("NDv3", "NCv2", "Inf2", "Inferentia2"),
    "trn1": _TRAINIUM1,
    "trn1n": _TRAINIUM1,
    "trn2": Architecture("NDv3", "NCv3", "Trn2", "Trainium2"),
    "trn3": Architecture("NDv4", "NCv4", "Trn3", "Trainium3"),
}
