"""Which NeuronCores an archive can run on: those of the first generation have other instructions."""

from __future__ import annotations

from neuron_tools import hardware
from neuron_tools.neff.archive import NeffError

FIRST = 1


def check_generation(target: str, present: int) -> None:
    """Refuse an archive that a NeuronCore cannot load.

    Args:
        target: What the archive was compiled for.
        present: The core's generation, the number after "v".

    Raises:
        NeffError: One of them is NeuronCore-v1 and the other is not.
    """
    compiled = hardware.get(target)
    if (compiled.generation == FIRST) != (present == FIRST):
        raise NeffError(
            f"The model was compiled for {compiled.name} ({target}) and cannot run on NeuronCore-v{present}, "
            "which has other instructions: compile it with --target for this chip, or capture with --target "
            f"{target}."
        )
