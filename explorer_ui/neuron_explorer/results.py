"""The profiler's analyses under the names by which pages ask for them."""

from __future__ import annotations

from typing import Any

from neuron_explorer.analyses import analysis
from neuron_explorer.jobs import in_background
from neuron_profile.analysis.advice.advise import advise
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.communication import Communication
from neuron_profile.analysis.identity import Identity, identify
from neuron_profile.analysis.idle_reasons import EngineTime, idle_reasons
from neuron_profile.analysis.overview import Overview, make_overview
from neuron_profile.analysis.roofline import Roofline, make_roofline
from neuron_profile.analysis.time.charges import index_charges
from neuron_profile.analysis.time.steps import Steps, find_steps
from neuron_profile.analysis.traces.collectives import communication_of
from neuron_profile.analysis.traces.roofline import make_trace_roofline
from neuron_profile.fix.proposal import Proposal
from neuron_profile.fix.propose import choose_for_kept
from neuron_tools.profile.reader import Profile

IDENTITY, OVERVIEW, FINDINGS, EDIT, IDLE = "identity", "overview", "findings", "edit", "idle"
PROGRAM_FINDINGS = "program-findings"
CHARGE_INDEX = "charge-index"
FIRST_PAINT_S = 3.0
"""By then a profile that was opened has been drawn."""
ROOFLINE, COMMUNICATION, STEPS = "roofline", "communication", "steps"


@analysis(IDENTITY, "Reading what was captured", of_whole=True)
def _identity(profile: Profile) -> Identity:
    return identify(profile)


@analysis(STEPS, "Finding the steps", of_whole=True)
def _steps(profile: Profile) -> Steps:
    return find_steps(profile)


@analysis(CHARGE_INDEX, "Summing up device time for every range", of_whole=True, begins_after_s=FIRST_PAINT_S)
def _charge_index(profile: Profile) -> None:
    with in_background():
        index_charges(profile)


@analysis(OVERVIEW, "Summing up device time", is_heavy=True, is_light_of_ranges=True)
def _overview(profile: Profile) -> Overview:
    return make_overview(profile)


@analysis(FINDINGS, "Looking for what could be faster, and simulating each gain", is_heavy=True)
def _findings(profile: Profile) -> tuple[Finding, ...]:
    return advise(profile)


@analysis(PROGRAM_FINDINGS, "Looking for what the whole program could save", of_whole=True, is_heavy=True)
def _program_findings(profile: Profile) -> tuple[Finding, ...]:
    return advise(profile)


@analysis(EDIT, "Deriving the edit", is_heavy=True)
def _edit(profile: Profile, number: str) -> Proposal:
    return choose_for_kept(profile, advise(profile), number)


@analysis(IDLE, "Dividing each engine's time into busy and idle", is_heavy=True)
def _idle(profile: Profile) -> tuple[EngineTime, ...]:
    return idle_reasons(profile)


@analysis(ROOFLINE, "Relating work to bytes moved")
def _roofline(profile: Profile, level: str) -> Roofline:
    found = make_roofline(profile, level)
    if found.points or not profile.tables().get("TraceSpan"):
        return found
    return make_trace_roofline(profile, level) or found


@analysis(COMMUNICATION, "Summing up collectives")
def _communication(profile: Profile) -> Communication:
    return communication_of(profile)


def rows(profile: Profile, query: str, parameters: Any = ()) -> list[dict[str, Any]]:
    """The rows of a query as dictionaries."""
    found: list[dict[str, Any]] = profile.query(query, parameters).to_pylist()
    return found
