"""What the time of two profiles costs, at the prices that a user gives for an hour of each device."""

from __future__ import annotations

from neuron_profile.analysis.comparison.difference import Difference
from neuron_tools.frozen import frozen

NS_PER_HOUR = 3_600_000_000_000
MILLION = 1_000_000


@frozen
class Cost:
    """What a million typical steps cost, or a million of what was recorded where no steps are known.

    Attributes:
        base_price, new_price: Of an hour, in any currency.
        base, new: Cost of the million, in the same currency.
        is_of_steps: Whether it is that of typical steps.
    """

    base_price: float
    new_price: float
    base: float
    new: float
    is_of_steps: bool


def cost_of(difference: Difference, base_price: float, new_price: float) -> Cost:
    """What both cost: the whole time counts, idle time too, since a device that waits is paid for as well."""
    steps = difference.base_step_ns, difference.new_step_ns
    is_of_steps = None not in steps
    times = steps if is_of_steps else (difference.base_total_ns, difference.new_total_ns)
    base, new = (
        (time_ns or 0) * price / NS_PER_HOUR * MILLION
        for time_ns, price in zip(times, (base_price, new_price))
    )
    return Cost(base_price, new_price, base, new, is_of_steps)
