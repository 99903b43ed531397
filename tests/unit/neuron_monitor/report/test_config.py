import json

import pytest
from hypothesis import given, settings, strategies as st

from neuron_monitor.errors import ConfigurationError
from neuron_monitor.report.config import (
    Group,
    default_configuration,
    parse_configuration,
    parse_duration,
    read_configuration,
)
from neuron_monitor.report.schedule import Schedule


@pytest.mark.parametrize(
    ("text", "seconds"), [("1s", 1), ("500ms", 0.5), ("1m30s", 90), ("1.5h", 5400), ("20000us", 0.02)]
)
def test_durations(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "1", "s", "1 s", "-1s", "1sec", "0s", "9ms", "1s x"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ConfigurationError):
        parse_duration(text)


def test_periods_are_inherited_from_the_root_to_the_group():
    configuration = parse_configuration(
        {
            "period": "3s",
            "neuron_runtimes": [
                {
                    "period": "2s",
                    "metrics": [{"type": "memory_used"}, {"type": "execution_stats", "period": "1s"}],
                }
            ],
            "system_metrics": [{"type": "vcpu_usage"}],
        }
    )
    assert configuration.runtimes[0].groups == (Group("memory_used", 2.0), Group("execution_stats", 1.0))
    assert configuration.system == (Group("vcpu_usage", 3.0),)


def test_a_period_that_is_nowhere_is_five_seconds():
    assert parse_configuration({"system_metrics": [{"type": "memory_info"}]}).system[0].period_s == 5.0


def test_the_old_name_of_the_execution_group_is_taken():
    told = {"neuron_runtimes": [{"metrics": [{"type": "inference_stats"}]}]}
    assert parse_configuration(told).runtimes[0].groups[0].name == "execution_stats"


@pytest.mark.parametrize(
    ("told", "word"),
    [
        ([], "object"),
        ({}, "no group"),
        ({"system_metrics": {}}, "list"),
        ({"system_metrics": ["vcpu_usage"]}, "object"),
        ({"system_metrics": [{"type": "spam"}]}, "spam"),
        ({"system_metrics": [{"type": "execution_stats"}]}, "execution_stats"),
        ({"period": 1, "system_metrics": [{"type": "vcpu_usage"}]}, "text"),
        ({"neuron_runtimes": [{"tag_filter": "(", "metrics": [{"type": "memory_used"}]}]}, "tag_filter"),
    ],
)
def test_a_configuration_that_asks_for_what_there_is_not_is_refused(told, word):
    with pytest.raises(ConfigurationError, match=word):
        parse_configuration(told)


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=6,
    )
)
def test_no_json_breaks_the_parser(told):
    with pytest.raises(ConfigurationError):
        parse_configuration({"system_metrics": told})


def test_a_file_is_named_in_its_error(tmp_path):
    path = tmp_path / "monitor.json"
    with pytest.raises(ConfigurationError, match=r"monitor\.json: no such file"):
        read_configuration(str(path))
    path.write_text("{")
    with pytest.raises(ConfigurationError, match="not JSON"):
        read_configuration(str(path))
    path.write_text(json.dumps({"system_metrics": [{"type": "memory_info"}]}))
    assert read_configuration(str(path)).periods() == {5.0}


def test_each_group_is_due_in_its_own_period():
    configuration = parse_configuration(
        {"system_metrics": [{"type": "vcpu_usage", "period": "1s"}, {"type": "memory_info", "period": "3s"}]}
    )
    schedule = Schedule(configuration, 0, 0)
    due = [[group.name for group in schedule.take_due(second * 10**9)] for second in range(4)]
    assert due == [
        ["vcpu_usage", "memory_info"],
        ["vcpu_usage"],
        ["vcpu_usage"],
        ["vcpu_usage", "memory_info"],
    ]


def test_periods_that_were_slept_through_are_left_out():
    schedule = Schedule(default_configuration(1.0), 0, 0)
    schedule.take_due(0)
    assert schedule.take_due(10_500_000_000)
    assert schedule.next_ns() == 11_000_000_000
