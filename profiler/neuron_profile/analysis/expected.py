"""The range in which silicon is expected, for all device time and for each line of it.

It comes from how far whole models were from their published times
(`neuron_tools.hardware.prediction_errors`). No times of single lines are published: a line is given the range
of its program.
"""

from __future__ import annotations

from neuron_profile.analysis.hotspots import Hotspots, LineCost, find_hotspots
from neuron_profile.analysis.identity import identify
from neuron_profile.analysis.source_frames import SourceLine
from neuron_tools.frozen import frozen
from neuron_tools.hardware.prediction_errors import SHARE, ExpectedFactors, expected_factors
from neuron_tools.profile.reader import Profile


@frozen
class ExpectedLine:
    """A source line: its simulated device time, and the range in which that of the chip is expected."""

    place: SourceLine
    device_ns: float
    low_ns: float
    high_ns: float


@frozen
class ExpectedTimes:
    """All device time, and where that of the chip is expected.

    Attributes:
        chance_percent: How often a measured time lies in the range.
        compiler_percent: How far the time may be off because the chip's compiler makes other code.
        hardware_percent: The same because the hardware takes other times for the same code.
        lines: Lines of the user's own code, by falling time.
    """

    device_ns: float
    low_ns: float
    high_ns: float
    chance_percent: float
    compiler_percent: float
    hardware_percent: float
    lines: tuple[ExpectedLine, ...] = ()


def is_simulated(profile: Profile) -> bool:
    """Whether a profile's device times are predictions for a chip that exists: no measurement, no what-if."""
    identity = identify(profile)
    is_capture = bool(identity.target and identity.host_clock) and not identity.formats
    return is_capture and not identity.settings


def find_expected(profile: Profile) -> ExpectedTimes | None:
    """Ranges of a profile; None where its times are no predictions, or nothing ran."""
    return expected_times(find_hotspots(profile)) if is_simulated(profile) else None


def expected_times(hotspots: Hotspots) -> ExpectedTimes | None:
    """Ranges of simulated times; None where nothing ran."""
    if not hotspots.device_ns:
        return None
    factors = expected_factors()
    return ExpectedTimes(
        device_ns=hotspots.device_ns,
        low_ns=hotspots.device_ns * factors.low,
        high_ns=hotspots.device_ns * factors.high,
        chance_percent=100 * SHARE,
        compiler_percent=100 * factors.compiler,
        hardware_percent=100 * factors.hardware,
        lines=tuple(_line(row, factors) for row in hotspots.lines),
    )


def _line(row: LineCost, factors: ExpectedFactors) -> ExpectedLine:
    time_ns = row.cost.device_ns
    return ExpectedLine(row.place, time_ns, time_ns * factors.low, time_ns * factors.high)


def is_beyond_doubt(base_ns: float, new_ns: float) -> bool:
    """Whether two predicted times differ by more than each may be off."""
    least, most = sorted((base_ns, new_ns))
    return most > least * expected_factors().high
