"""What an agent asks of profiles beside the costs: summary, steps, findings, what-if, diff, tables, SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from neuron_profile.agents.answer import Json, share
from neuron_profile.analysis.advice.advise import find_all, what_is_lacking
from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.comparison.difference import compare
from neuron_profile.analysis.comparison.layers import LayersDelta, join_layers
from neuron_profile.analysis.identity import identify
from neuron_profile.analysis.overview import Overview, make_overview
from neuron_profile.analysis.time.steps import find_steps
from neuron_profile.analysis.whatif.change import combined, parse_change
from neuron_profile.analysis.whatif.run import Gain, WhatIf
from neuron_profile.reports.difference_text import reason_text
from neuron_tools.errors import UsageError
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.schema import table_schema

QUERY_TIMEOUT_S = 60.0
METRICS = ("mfu_estimated_percent", "mbu_estimated_percent", "hbm_read_bytes", "hbm_write_bytes")


def summary(profile: Profile) -> Json:
    """What ran, what it waited for and how well it used the chip."""
    identity, overview = identify(profile), make_overview(profile)
    occupancy = overview.occupancy
    return {
        "command": identity.command,
        "target": identity.target,
        "host_clock": identity.host_clock,
        "complete": identity.complete,
        "window_ns": occupancy.window_ns,
        "device_ns": occupancy.device_ns,
        "idle_ns": occupancy.idle_ns,
        "busy_share": round(occupancy.busy_share, 4),
        "bound": occupancy.bound.value,
        "executions": occupancy.executions,
        "cores": occupancy.cores,
        "compiled_graphs": occupancy.compiled_graphs,
        "engines": {use.name: round(use.of_device, 4) for use in overview.engines},
        **_metrics(overview),
        "peak_hbm_bytes": max((peak.peak_bytes for peak in overview.memory), default=None),
        "warnings": [{"message": each.message, "count": each.count} for each in overview.warnings[:5]],
        "missing": list(identity.missing),
    }


def _metrics(overview: Overview) -> Json:
    return {name: overview.metrics[name] for name in METRICS if overview.metrics.get(name) is not None}


def steps(profile: Profile, limit: int) -> Json:
    """The steps of the program, and which of them is typical."""
    found = find_steps(profile)
    rows = [
        {"number": step.number, "name": step.name, "kind": step.kind, "begin_ns": step.begin_ns,
         "duration_ns": step.duration_ns}
        for step in found.steps
    ]  # fmt: skip
    typical = found.typical.number if found.typical else None
    return {
        "count": len(rows),
        "typical": typical,
        "rows": rows[:limit],
        "left_out": max(0, len(rows) - limit),
    }


def one_step(profile: Profile, number: int) -> Profile:
    """The profile seen through one step; close it.

    Raises:
        UsageError: There is no step of that number.
    """
    found = find_steps(profile).steps
    step = next((each for each in found if each.number == number), None)
    if step is None:
        raise UsageError(f"There is no step {number}: the profile has {len(found)}, counted from 1.")
    return profile.slice(step.begin_ns, step.end_ns)


def findings(profile: Profile, limit: int) -> Json:
    """The findings of the advice, the largest gain first; numbers are those that `fix` takes."""
    context = Context(profile)
    found = find_all(context)
    rows = [{"finding": number, **_finding(each)} for number, each in enumerate(found[:limit], 1)]
    lacking = what_is_lacking(context)
    return {
        "rows": rows,
        "left_out": max(0, len(found) - limit),
        **({"lacking": lacking} if lacking else {}),
    }


def proposal(profile: Profile, number: int) -> Json:
    """The edit that mends a finding, as a diff; nothing is written or run.

    Args:
        number: Of `findings`; 0 = the first that an edit mends.

    Raises:
        NoEditError: No edit can be derived.
    """
    from neuron_profile.fix.propose import choose

    chosen, found = choose(profile, find_all(Context(profile)), number or None)
    diff = found.diff(found.path.name)
    return {
        "finding": chosen,
        "rule": found.finding.rule,
        "file": str(found.path),
        "edit": found.edit.title,
        "diff": diff.splitlines(),
        "promised_ns": found.finding.gain_ns,
    }


def _finding(finding: Finding) -> Json:
    return {
        "rule": finding.rule,
        "title": finding.title,
        "change": finding.change,
        "place": _place(finding.place),
        "gain_ns": finding.gain_ns,
        "gain": round(finding.gain, 4),
        "gain_of": finding.gain_of,
        "device_gain_ns": finding.device_gain_ns,
        **({"what_if": finding.what_if} if finding.what_if else {}),
        **({"inside": _place(finding.library_place)} if finding.library_place.file else {}),
    }


def _place(place: Place) -> Json:
    return {name: value for name, value in asdict(place).items() if value}


def what_if(profile: Profile, changes: Sequence[str]) -> Json:
    """What changes would give, simulated together.

    Raises:
        UsageError: There is none, or one is not understood.
    """
    if not changes:
        raise UsageError("Name at least one change, such as hbm_bandwidth=2x or dtype=bf16.")
    parsed = [parse_change(text) for text in changes]
    runs = WhatIf(profile)
    gain = runs.gain(combined(parsed))
    idle = [change.text for change in parsed if not runs.changes_anything(change)]
    return {**_gain(gain), **({"changes_nothing": idle} if idle else {})}


def _gain(gain: Gain) -> Json:
    return {
        "change": gain.change,
        "total_ns": gain.total_ns,
        "total_after_ns": gain.total_after_ns,
        "total_gain": round(gain.total_gain, 4),
        "device_ns": gain.device_ns,
        "device_after_ns": gain.device_after_ns,
    }


def difference(base: Profile, new: Profile, limit: int) -> Json:
    """What got slower or faster from one profile to the other, and because of what."""
    found = compare(base, new)
    changed = [each for each in join_layers(found.deltas) if each.delta.delta_ns]
    return {
        "device_ns": [found.base_device_ns, found.new_device_ns],
        "idle_ns": [found.base_idle_ns, found.new_idle_ns],
        "total_ns": [found.base_total_ns, found.new_total_ns],
        "total_change": share(found.new_total_ns - found.base_total_ns, found.base_total_ns),
        "rows": [_delta(each) for each in changed[:limit]],
        "left_out": max(0, len(changed) - limit),
    }


def _delta(each: LayersDelta) -> Json:
    delta = each.delta
    return {
        "module": delta.key.module,
        "operation": delta.key.operation,
        **({"backward": True} if delta.key.backward else {}),
        **({"modules": each.modules} if each.modules > 1 else {}),
        "change": delta.change,
        "base_ns": delta.base_ns,
        "new_ns": delta.new_ns,
        "because": [reason_text(reason) for reason in delta.reasons[:2]],
        **({"file": delta.file, "line": delta.line} if delta.file else {}),
    }


def tables(profile: Profile) -> Json:
    """The tables that the profile has rows of."""
    rows = [
        {"table": name, "rows": count, "meaning": table_schema(name).description}
        for name, count in profile.tables().items()
    ]
    return {"rows": rows}


def columns(name: str) -> Json:
    """The columns of one table.

    Raises:
        UnknownTableError: There is no such table.
    """
    table = table_schema(name)
    rows = [
        {"column": field.name, "type": field.sql_type, **({"unit": field.unit} if field.unit else {}),
         "meaning": field.description}
        for field in table.fields
    ]  # fmt: skip
    return {"table": table.name, "meaning": table.description, "rows": rows}


def query(profile: Profile, sql: str, limit: int) -> Json:
    """The first rows of a reading query, run in a process that can reach nothing but the profile.

    Raises:
        QueryError: It is not a single reading statement, is wrong, or took too much.
    """
    result = profile.first_rows(sql, limit + 1, QUERY_TIMEOUT_S)
    shown = result.slice(0, limit)
    rows = [list(row) for row in zip(*(column.to_pylist() for column in shown.columns))]
    return {"columns": result.column_names, "rows": rows, "more": result.num_rows > limit}
