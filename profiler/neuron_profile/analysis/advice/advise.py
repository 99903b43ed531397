"""Runs all rules over a profile and ranks what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.own_lines import OwnLine
from neuron_profile.analysis.remembered import remembering
from neuron_profile.analysis.source_frames import SourceLine
from neuron_tools.doors import Door
from neuron_tools.profile.reader import Profile

_LAUNCHES = (
    "repeated_copies",
    "layout_copies",
    "dtype_round_trips",
    "recomputation",
    "unused_outputs",
    "unfused_updates",
    "tiny_batches",
    "unfused_attention",
    "unfused_dropout",
    "frozen_gradients",
    "missing_jit",
)
_NAMES = (
    "uncompiled",
    "graph_breaks",
    "host_synchronisation",
    *_LAUNCHES,
    "growing_caches",
    "padding",
    "host_bound",
    "host_activity",
    "tiny_operations",
    "recompilation",
    "upcast_products",
    "fp32_matmul",
    "narrow_lookups",
    "small_dma",
    "repeated_loads",
    "spill",
    "transposes",
    "underfilled_tiles",
    "engine_imbalance",
    "dma_not_overlapped",
    "psum_evacuation",
    "throttling",
    "idle_cores",
    "custom_calls",
    "unoverlapped_collectives",
    "collective_skew",
    "expert_imbalance",
    "pipeline_bubbles",
    "serial_collectives",
    "device_traces",
)
"""In the order in which findings are looked for."""
_DONE_AGAIN = ("repeated_copies", "layout_copies", "recomputation", "unused_outputs")


def _place(name: str) -> str:
    """A rule is `find` of the file of its name in `rules/`, but those of one thought share a file."""
    return f"done_again:{name}" if name in _DONE_AGAIN else f"{name}:find"


RULES = Door(
    "neuron_profile.rules",
    "advice rule",
    tuple((name, f"neuron_profile.analysis.advice.rules.{_place(name)}") for name in _NAMES),
)
"""Each a `Rule`: it looks at a profile and yields findings."""

EXPLAINED_BY = {
    "host_bound": ("host_synchronisation", "tiny_operations", *_LAUNCHES),
    "tiny_operations": _LAUNCHES,
    "collective_skew": ("expert_imbalance",),
}
"""General rules, and the specific ones whose gain is part of theirs."""
STANDS_BEFORE = {"tiny_operations": ("host_synchronisation",)}
"""General rules, and those whose findings come first although both gain: no graph reaches over a wait."""
OF_A_LINE = frozenset({"tiny_operations"})
"""General rules that are about one line: there, specific findings elsewhere are no part of their gain."""
BEFORE_ALL = frozenset({"uncompiled"})
"""Rules about time that is not known: what all others say is of the rest."""
LARGE = 0.05
"""Part of the time in which the device is used that puts a specific finding before any general one."""
THE_COMPILERS = frozenset(
    {
        "dma_not_overlapped",
        "engine_imbalance",
        "psum_evacuation",
        "repeated_loads",
        "throttling",
        "transposes",
        "underfilled_tiles",
    }
)
"""Rules about what the compiler decides, except in kernels that the user wrote."""

MINIMUM_REST = 0.1
"""Part of a general finding's gain that must be left beside the specific ones for it to be told."""
LARGER_REST = {"collective_skew": 0.6}
"""The same where a cause takes more away than it gains: a late rank's work goes to the others."""
LEAST_GAIN = 1e-4
"""Part of the time of the device's use below which a simulated gain is not worth telling: 0.01 %."""

Rule = Callable[[Context], Iterator[Finding]]


def advise(profile: Profile) -> tuple[Finding, ...]:
    """All findings, those with the largest gain first; equal ones by gain of device time, rule and place."""
    return find_all(Context(profile))


def find_all(context: Context) -> tuple[Finding, ...]:
    """The same of a profile that is looked at already."""
    used_ns = _used_ns(context)
    with remembering(context.profile):
        found = [finding for _, rule in RULES.load_all() for finding in rule(context)]
    findings = _without_explained([finding for finding in found if _is_worth_telling(finding, used_ns)])
    placed = [
        _of_device_time(_within_reach(_at_own_line(finding, context.callers), context), context)
        for finding in findings
    ]
    return tuple(sorted(placed, key=_ranking(placed, used_ns)))


def _is_worth_telling(finding: Finding, used_ns: int) -> bool:
    """Whether a change gains what can be measured, now or once nothing else is waited for."""
    gain_ns = max(finding.gain_ns or 0, finding.device_gain_ns or 0)
    return finding.gain_ns is None or gain_ns >= max(LEAST_GAIN * min(finding.total_ns, used_ns), 1)


def _used_ns(context: Context) -> int:
    """From the device's first execution to its last: what comes before is in no finding's power."""
    occupancy = context.occupancy
    return occupancy.window_ns // max(occupancy.cores, 1)


def _within_reach(finding: Finding, context: Context) -> Finding:
    """The finding, marked where its cause is the choice of the compiler, or of a library's kernel."""
    if finding.rule not in THE_COMPILERS or context.executions is None or not context.programs:
        return finding
    if SourceLine(finding.place.file, finding.place.line) in context.own_kernel_lines:
        return finding
    return replace(finding, within_reach=False)


def _of_device_time(finding: Finding, context: Context) -> Finding:
    """The finding with the time that its gain of device time is a part of."""
    return replace(finding, device_ns=round(context.device_ns)) if finding.device_gain_ns else finding


def _at_own_line(finding: Finding, callers: Mapping[SourceLine, OwnLine]) -> Finding:
    """The finding at the line of the user's that its place was reached from."""
    exact = finding.place
    if finding.library_place.file:
        return finding
    caller = callers.get(SourceLine(exact.file, exact.line))
    if caller is None or caller.place == SourceLine(exact.file, exact.line):
        return finding
    own = replace(exact, file=caller.place.file, line=caller.place.line, function=caller.function)
    return replace(finding, place=own, library_place=exact)


Rank = tuple[int, int, int, str, str]


def _ranking(findings: Sequence[Finding], used_ns: int) -> Callable[[Finding], Rank]:
    """By falling gain: first what a line of the program causes, then general causes, then the compiler's."""
    causes = {
        finding.rule for finding in findings if _is_large(finding, used_ns) and finding.within_reach
    } - EXPLAINED_BY.keys()

    def rank(finding: Finding) -> Rank:
        before = EXPLAINED_BY.get(finding.rule, ()), STANDS_BEFORE.get(finding.rule, ())
        is_general = bool(causes.intersection(chain(*before)) if finding.rule in OF_A_LINE else causes)
        tier = int(is_general and finding.rule in EXPLAINED_BY) if finding.within_reach else 2
        if finding.rule in BEFORE_ALL:
            tier = -1
        gain_ns, device_gain_ns = max(0, finding.gain_ns or 0), finding.device_gain_ns or 0
        return tier, -gain_ns, -device_gain_ns, finding.rule, str(finding.place)

    return rank


def _is_large(finding: Finding, used_ns: int) -> bool:
    gain_ns = finding.gain_ns or 0
    return finding.gain >= LARGE or gain_ns >= LARGE * used_ns > 0


def what_is_lacking(context: Context) -> str:
    """A sentence where the profile lacks what most rules look at; else ""."""
    if context.what_if is not None:
        return ""
    return (
        "This profile keeps no programs to simulate again, as captures do: most rules had nothing to look "
        "at. See `neuron-profile analyze idle` and `analyze critical-path`."
    )


def _without_explained(findings: list[Finding]) -> list[Finding]:
    """General findings without the part of their gain that specific ones claim."""
    remaining = []
    for finding in findings:
        claimed = sum(other.gain_ns or 0 for other in findings if _explains(other, finding))
        gain_ns = (finding.gain_ns or 0) - claimed
        if not claimed:
            remaining.append(finding)
        elif gain_ns > LARGER_REST.get(finding.rule, MINIMUM_REST) * (finding.gain_ns or 0):
            remaining.append(replace(finding, gain_ns=gain_ns))
    return remaining


def _explains(specific: Finding, general: Finding) -> bool:
    """Whether the gain of a finding is part of a general one's."""
    if specific.rule not in EXPLAINED_BY.get(general.rule, ()):
        return False
    return general.rule not in OF_A_LINE or specific.place == general.place
