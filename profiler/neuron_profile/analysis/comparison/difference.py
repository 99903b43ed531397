"""What got slower or faster between two profiles, by how much, because of what."""

from __future__ import annotations

from collections.abc import Mapping

from neuron_profile.analysis.comparison.alignment import align
from neuron_profile.analysis.comparison.instructions import instruction_totals
from neuron_profile.analysis.comparison.lines import (
    LineDelta,
    LineTimes,
    line_deltas,
    times_of_own_lines,
)
from neuron_profile.analysis.comparison.operations import (
    COUNTER_NAMES,
    NO_OPERATION,
    Counters,
    OperationKey,
    OperationTotal,
    operation_totals,
)
from neuron_profile.analysis.comparison.trace_operations import in_order_of_time, is_trace, trace_totals
from neuron_profile.analysis.errors import LacksDataError
from neuron_profile.analysis.expected import is_simulated
from neuron_profile.analysis.occupancy import measure_occupancy
from neuron_profile.analysis.source_frames import SourceTexts
from neuron_profile.analysis.time.charges import charge_device_time
from neuron_profile.analysis.time.steps import find_steps
from neuron_profile.analysis.traces.breakdown import device_times
from neuron_profile.analysis.traces.device_spans import load_device_spans
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_NOTHING = OperationTotal(0, Counters())
SAME = 0.02  # counters that differ by less explain nothing
TILES = "tiles"
"""The same work in more or fewer instructions: it is cut into other tiles."""
THROTTLED = "throttled"
"""The same matrix work takes the Tensor engine longer, or less long."""


@frozen
class Reason:
    """A counter that moved the way the time did.

    Attributes:
        counter: A field of `Counters`, `TILES` or `THROTTLED`.
    """

    counter: str
    base: int
    new: int


@frozen
class Delta:
    """One operation in both profiles.

    Attributes:
        key: Its place in the new profile, or in the base one where it is gone.
        change: "changed", "added", "removed", "renamed" or "same".
        base_ns, new_ns: Device time.
        reasons: What explains the difference, most telling first.
        file, line: The user's own line that it was called from.
        library_file, library_line: The exact line, where that is a library's.
    """

    key: OperationKey
    change: str
    base_ns: int
    new_ns: int
    base: Counters
    new: Counters
    reasons: tuple[Reason, ...]
    file: str = ""
    line: int = 0
    library_file: str = ""
    library_line: int = 0

    @property
    def delta_ns(self) -> int:
        """New minus base."""
        return self.new_ns - self.base_ns


@frozen
class Difference:
    """Two profiles.

    Attributes:
        deltas: By falling size; the sum of all is `new_device_ns - base_device_ns`.
        lines: Lines of the user's own code that take more or less device time, by falling difference.
        base_idle_ns, new_idle_ns: Time between executions, in which the device waited for the host.
        base_step_ns, new_step_ns: Length of a typical step; None where no steps are known.
        is_predicted: Both were simulated for chips that exist.
    """

    base_device_ns: int
    new_device_ns: int
    base_idle_ns: int
    new_idle_ns: int
    deltas: tuple[Delta, ...]
    lines: tuple[LineDelta, ...] = ()
    is_predicted: bool = False
    base_step_ns: int | None = None
    new_step_ns: int | None = None

    @property
    def base_total_ns(self) -> int:
        """Device time and idle time of the base profile."""
        return self.base_device_ns + self.base_idle_ns

    @property
    def new_total_ns(self) -> int:
        """Device time and idle time of the new profile."""
        return self.new_device_ns + self.new_idle_ns


def compare(base: Profile, new: Profile) -> Difference:
    """Align two profiles by module, operation and direction, and tell what changed.

    Raises:
        LacksDataError: In one of them nothing ran on a device.
    """
    before, after = _Device.of(base), _Device.of(new)
    across = is_trace(base) != is_trace(new)
    operations = [
        in_order_of_time(profile, dict(device.operations)) if across and not is_trace(profile)
        else device.operations
        for profile, device in ((base, before), (new, after))
    ]  # fmt: skip
    return Difference(
        before.device_ns,
        after.device_ns,
        _idle_ns(base),
        _idle_ns(new),
        make_deltas(*operations, in_order=across),
        ()
        if across
        else line_deltas(before.lines, after.lines, *(SourceTexts(each) for each in (base, new))),
        is_predicted=is_simulated(base) and is_simulated(new),
        base_step_ns=_step_ns(base),
        new_step_ns=_step_ns(new),
    )


@frozen
class _Device:
    """Device time of a profile by operation and by the user's own line."""

    device_ns: int
    operations: Mapping[OperationKey, OperationTotal]
    lines: LineTimes

    @classmethod
    def of(cls, profile: Profile) -> _Device:
        """Of a capture, else of another tool's trace, else of a profile of the device alone."""
        if is_trace(profile):
            totals, device_ns = trace_totals(profile)
            if not device_ns:
                raise LacksDataError(
                    f"{profile.path} lacks the data for a comparison: it has no spans of a device."
                )
            return cls(device_ns, totals, {})
        charges = charge_device_time(profile)
        totals, device_ns = operation_totals(profile, charges)
        lines = times_of_own_lines(profile, charges)
        if not any(key != NO_OPERATION for key in totals):
            totals, device_ns = instruction_totals(profile)
            lines = {}
        if not device_ns:
            raise LacksDataError(
                f"{profile.path} lacks the data for a comparison: it has no instructions of a device."
            )
        return cls(device_ns, totals, lines)


def _step_ns(profile: Profile) -> int | None:
    typical = find_steps(profile).typical
    return typical.duration_ns if typical else None


def _idle_ns(profile: Profile) -> int:
    """Time in which nothing ran on a device between the first and the last work."""
    if is_trace(profile):
        return sum(time.idle_ns for time in device_times(load_device_spans(profile)))
    return measure_occupancy(profile).idle_ns


def make_deltas(
    base: Mapping[OperationKey, OperationTotal],
    new: Mapping[OperationKey, OperationTotal],
    *,
    in_order: bool = False,
) -> tuple[Delta, ...]:
    """Every operation of both, aligned, by falling difference; the sum is that of the totals.

    Args:
        in_order: As `align` takes it.
    """
    deltas = [
        _delta(old_key, new_key, base.get(old_key, _NOTHING), new.get(new_key, _NOTHING))  # type: ignore[arg-type]  # one of them may be None, and then gets nothing
        for old_key, new_key in align(base, new, in_order=in_order)
    ]
    return tuple(sorted(deltas, key=lambda delta: (-abs(delta.delta_ns), delta.key)))


def _delta(
    old_key: OperationKey | None, new_key: OperationKey | None, old: OperationTotal, new: OperationTotal
) -> Delta:
    key = new_key or old_key
    assert key is not None
    place = new if new_key else old
    return Delta(
        key, _change(old_key, new_key, old, new), old.device_ns, new.device_ns, old.counters, new.counters,
        find_reasons(old, new) if old_key and new_key else (), place.file, place.line,
        place.library_file, place.library_line,
    )  # fmt: skip


def _change(
    old_key: OperationKey | None, new_key: OperationKey | None, old: OperationTotal, new: OperationTotal
) -> str:
    if old_key is None:
        return "added"
    if new_key is None:
        return "removed"
    if old_key != new_key:
        return "renamed"
    return "same" if old.device_ns == new.device_ns else "changed"


def find_reasons(old: OperationTotal, new: OperationTotal) -> tuple[Reason, ...]:
    """Counters that moved the way the time did, those that moved most first."""
    if new.device_ns == old.device_ns:
        return ()
    slower = new.device_ns > old.device_ns
    found = []
    for name in COUNTER_NAMES:
        before, after = getattr(old.counters, name), getattr(new.counters, name)
        moved = _moved(old, new, name)
        if abs(moved) > SAME and (moved > 0) == slower:
            shown = _finer(old, new, name)
            if shown:
                found.append((-abs(moved), shown, before, after))
    return tuple(Reason(name, before, after) for _, name, before, after in sorted(found))


def _moved(old: OperationTotal, new: OperationTotal, name: str) -> float:
    """By how much of the larger value a counter moved."""
    before, after = getattr(old.counters, name), getattr(new.counters, name)
    return float((after - before) / max(before, after, 1))


def _finer(old: OperationTotal, new: OperationTotal, name: str) -> str:
    """What a moved counter means beside the others; "" where another one says it."""
    steady = {other for other in COUNTER_NAMES if abs(_moved(old, new, other)) <= SAME}
    if name == "tensor_ns":
        return THROTTLED if {"adjusted_flops", "instructions"} <= steady else ""
    if name == "instructions" and {"calls", "adjusted_flops"} <= steady:
        return TILES
    return name
