"""Runs all rules over a profile and ranks what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_tools.profile.reader import Profile

RULES = (
    "host_synchronisation",
    "host_bound",
    "tiny_operations",
    "recompilation",
    "fp32_matmul",
    "small_dma",
    "repeated_loads",
    "spill",
    "transposes",
    "underfilled_tiles",
    "engine_imbalance",
    "dma_not_overlapped",
    "throttling",
    "custom_calls",
)
"""Names of the rules: files of `rules/`."""

Rule = Callable[[Context], Iterator[Finding]]


def advise(profile: Profile) -> tuple[Finding, ...]:
    """All findings, those with the largest gain first; equal ones by rule and place."""
    context = Context(profile)
    findings = [finding for name in RULES for finding in rule(name)(context)]
    return tuple(
        sorted(findings, key=lambda finding: (-(finding.gain_ns or 0), finding.rule, str(finding.place)))
    )


def rule(name: str) -> Rule:
    """A rule's function."""
    found: Rule = import_module(f"neuron_profile.analysis.advice.rules.{name}").find
    return found
