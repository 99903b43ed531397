"""The Tensor engine is held back by its power limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import Change, Variant
from neuron_profile.analysis.whatif.executions import Origins

MINIMUM_GAIN = 0.02


def find(context: Context) -> Iterator[Finding]:
    """A finding where the limit costs a fiftieth of the device time."""
    if not context.programs:
        return
    finding = context.finding(
        "throttling",
        "The Tensor engine runs at half rate until it has been busy for a while",
        "Keep the Tensor engine fed without pauses: group matrix products, evacuate PSUM on another "
        "engine meanwhile, and avoid phases in which it idles between them.",
        Change("", _unlimited),
    )
    if (finding.device_gain_ns or 0) >= MINIMUM_GAIN * context.device_ns:
        yield finding


def _unlimited(variant: Variant, origins: Origins) -> Variant:
    core = variant.core
    full = {"throttle_initial": core.throttle_steps, "throttle_idle": core.throttle_steps}
    return replace(variant, core=core.replace(**full, throttle_busy=core.throttle_steps))
