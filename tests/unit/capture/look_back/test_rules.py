"""Rules that ask for a profile."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_tools.capture.host_rows import IN_OPTIMIZER
from neuron_tools.capture.look_back.rules import FEWEST_FOR_P99, Rule, RuleWatch, never_seen, parse_rule
from neuron_tools.errors import UsageError
from neuron_tools.records.capture_log import RecordKind
from tests.unit.capture.logs import both, host

NAMES = {1: "request", 2: "load", 3: "AdamW.step", 4: "SGD.step"}


def watch(text: str) -> RuleWatch:
    return RuleWatch(parse_rule(text), lambda number: NAMES.get(number, ""))


def table(*rows: np.ndarray) -> np.ndarray:
    return np.concatenate(rows)


def steps(*durations_ns: int) -> np.ndarray:
    return table(*(host(RecordKind.STEP, 0, duration) for duration in durations_ns))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("error", Rule("error", "error")),
        ("step > 50ms", Rule("step > 50ms", "step", limit=50_000_000)),
        ("latency>1.5s", Rule("latency>1.5s", "latency", limit=1_500_000_000)),
        ("latency > 3 * p99", Rule("latency > 3 * p99", "latency", factor=3.0)),
        ("latency > p99*2.5", Rule("latency > p99*2.5", "latency", factor=2.5)),
        ("step > p99", Rule("step > p99", "step", factor=1.0)),
        ("range:request > 10us", Rule("range:request > 10us", "range:request", limit=10_000)),
        (
            "device_memory > 12 GiB",
            Rule("device_memory > 12 GiB", "device_memory", limit=12 << 30),
        ),
    ],
)
def test_rules_are_understood(text: str, rule: Rule) -> None:
    assert parse_rule(text) == rule


@pytest.mark.parametrize(
    "text",
    [
        "",
        "errors",
        "step < 5ms",
        "step > fast",
        "step > 5GiB",
        "device_memory > 5ms",
        "latency > -1",
        "range: > 1",
    ],
)
def test_others_are_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match=r"step > 200ms"):
        parse_rule(text)


def test_the_first_value_over_the_limit_is_told() -> None:
    alert = watch("step > 50ns").look(steps(10, 50, 60, 99))
    assert alert is not None
    assert (alert.rule, alert.what, alert.host_ns) == ("step > 50ns", "0.000 ms", 60)
    assert watch("step > 99ns").look(steps(10, 50, 60, 99)) is None


def optimizer_steps(*ends_ns: int, name: int = 3, flags: int = IN_OPTIMIZER) -> np.ndarray:
    return table(*(host(RecordKind.RANGE, end - 1, end, name=name, flags=flags) for end in ends_ns))


def test_without_marks_a_step_lasts_from_one_optimizer_step_to_the_next() -> None:
    each = watch("step > 50ns")
    assert each.look(optimizer_steps(100, 150)) is None
    alert = each.look(optimizer_steps(201))
    assert alert is not None
    assert (alert.host_ns, each.is_seen) == (201, True)
    assert each.look(optimizer_steps(251, 300)) is None


def test_each_optimizer_has_steps_of_its_own() -> None:
    each = watch("step > 50ns")
    assert each.look(table(optimizer_steps(100), optimizer_steps(140, name=4), optimizer_steps(150))) is None
    assert each.look(optimizer_steps(191, name=4)) is not None


def test_marked_steps_count_alone() -> None:
    each = watch("step > 50ns")
    assert each.look(steps(10)) is None
    assert each.look(optimizer_steps(100, 900)) is None


def test_a_range_of_the_users_is_no_optimizer_step() -> None:
    each = watch("step > 50ns")
    assert each.look(optimizer_steps(100, 900, flags=0)) is None
    assert not each.is_seen


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("step > 50ms", "marks no steps"),
        ("latency > 50ms", "no compiled graph ran"),
        ("range:request > 50ms", "no range was called 'request'"),
        ("device_memory > 1GiB", "no device memory"),
    ],
)
def test_a_rule_whose_series_was_never_seen_says_why(text: str, why: str) -> None:
    each = watch(text)
    each.look(host(RecordKind.RANGE, 0, 900, name=2))
    assert not each.is_seen
    assert why in never_seen(parse_rule(text))


def test_a_range_is_known_by_its_name() -> None:
    records = table(host(RecordKind.RANGE, 0, 900, name=2), host(RecordKind.RANGE, 0, 20, name=1))
    assert watch("range:request > 50ns").look(records) is None
    alert = watch("range:load > 50ns").look(records)
    assert alert is not None
    assert alert.what.startswith("load: ")


def test_latency_counts_from_dispatch_to_the_devices_finish() -> None:
    records = both(RecordKind.GRAPH, 1_000, 5_000, 100, executable=3)
    assert watch("latency > 4099ns").look(records) is not None
    assert watch("latency > 4100ns").look(records) is None


def test_a_multiple_of_the_percentile_waits_until_enough_is_known() -> None:
    each = watch("step > 2 * p99")
    assert each.look(steps(*[100] * (FEWEST_FOR_P99 - 1))) is None
    assert each.look(steps(10_000)) is None  # one too few to compare with
    each = watch("step > 2 * p99")
    each.look(steps(*[100] * FEWEST_FOR_P99))
    assert each.look(steps(200)) is None
    assert each.look(steps(150, 203)) is not None


def test_each_graph_is_held_against_its_own_past() -> None:
    each = watch("latency > 2 * p99")
    fast = [both(RecordKind.GRAPH, 0, 0, 100, executable=1) for _ in range(200)]
    slow = [both(RecordKind.GRAPH, 0, 0, 9_000, executable=2) for _ in range(200)]
    assert each.look(table(*fast, *slow)) is None
    assert each.look(both(RecordKind.GRAPH, 0, 0, 9_000, executable=2)) is None
    assert each.look(both(RecordKind.GRAPH, 0, 0, 9_000, executable=1)) is not None


def test_memory_alerts_once_when_the_limit_is_passed() -> None:
    each = watch("device_memory > 100B")
    assert each.look(host(RecordKind.ALLOCATE, 4, 4, bytes=50)) is None
    grow = host(RecordKind.ALLOCATE, 5, 5, bytes=60)
    shrink = host(RecordKind.FREE, 6, 6, bytes=60)
    alert = each.look(grow)
    assert alert is not None
    assert alert.host_ns == 5
    assert each.look(host(RecordKind.ALLOCATE, 7, 7, bytes=1)) is None
    assert each.look(table(shrink, host(RecordKind.FREE, 8, 8, bytes=1))) is None
    assert each.look(grow) is not None
