import json
import re
from pathlib import Path

from neuron_monitor.prometheus.series import SERIES, kind_of
from neuron_monitor.report.config import KUBERNETES_GROUP, RUNTIME_GROUPS, SYSTEM_GROUPS, parse_configuration

DOCS = Path(__file__).parents[4] / "docs"


def test_every_series_is_documented_with_its_type():
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", (DOCS / "monitor-metrics.md").read_text(), re.MULTILINE)
    assert dict(rows) == {name: kind_of(name) for name in SERIES}


def test_every_group_is_documented():
    text = (DOCS / "monitor.md").read_text()
    assert [
        group for group in (*RUNTIME_GROUPS, *SYSTEM_GROUPS, KUBERNETES_GROUP) if f"`{group}`" not in text
    ] == []


def test_the_documented_configuration_is_one():
    (example,) = re.findall(r"```json\n(.*?)```", (DOCS / "monitor.md").read_text(), re.DOTALL)
    assert parse_configuration(json.loads(example)).periods() == {1.0, 10.0, 60.0}


def test_every_alert_says_what_to_do():
    rules = (DOCS.parent / "monitor/deploy/prometheus/rules.yml").read_text()
    documented = re.findall(r"^\| `(Neuron\w+)` \|", (DOCS / "monitor-fleet.md").read_text(), re.MULTILINE)
    assert documented == re.findall(r"- alert: (\w+)", rules)
