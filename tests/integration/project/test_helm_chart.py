"""The chart of the monitor: its values keep their schema, and what it renders keeps Kubernetes'.

The templates hold values by name and nothing else, so that they can be filled in here without Helm.
"""

import json
import re

import jsonschema
import pytest
import yaml

from tests.integration.project.checkout import ROOT
from tests.integration.project.test_deployment import OBJECT, SPECS

CHART = ROOT / "monitor/deploy/helm/neuron-monitor"
EXPRESSION = re.compile(r"\{\{ \.(Values|Release)\.(\w+)(?: \| (quote|toJson))? \}\}")
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def rendered(**changes):
    known = {"Values": {**VALUES, **changes}, "Release": {"Namespace": "watching"}}

    def fill(match):
        value = known[match[1]][match[2]]
        return json.dumps(value) if match[3] else str(value)

    texts = [EXPRESSION.sub(fill, file.read_text()) for file in sorted((CHART / "templates").iterdir())]
    assert not any("{{ " in text for text in texts)
    return {found["kind"]: found for text in texts for found in yaml.safe_load_all(text)}


def test_the_values_keep_their_schema():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.validate(VALUES, SCHEMA)
    used = {
        match[1]
        for file in (CHART / "templates").iterdir()
        for match in re.finditer(r"Values\.(\w+)", file.read_text())
    }
    assert used == set(VALUES)


@pytest.mark.parametrize(
    "change", [{"port": 0}, {"port": "8000"}, {"period": "often"}, {"tokenSecret": ""}, {"nodelabel": "x"}]
)
def test_wrong_values_are_refused(change):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**VALUES, **change}, SCHEMA)


def test_what_is_rendered_keeps_kubernetes_schema():
    found = rendered()
    assert set(found) == {"DaemonSet", "Service", "ServiceMonitor"}
    for kind, each in found.items():
        jsonschema.validate(each, OBJECT)
        jsonschema.validate(each["spec"], SPECS[kind])
        assert each["metadata"]["namespace"] == "watching"


def test_values_reach_the_pods():
    found = rendered(port=9000, tokenSecret="mine", nodeLabel="gpu-free")
    pods = found["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pods["containers"]
    assert "--port=9000" in container["args"]
    assert pods["nodeSelector"]["gpu-free"] == "true"
    assert pods["volumes"][0]["secret"]["secretName"] == "mine"
    assert container["resources"] == VALUES["resources"]
    assert found["Service"]["spec"]["ports"][0]["port"] == 9000
    assert found["ServiceMonitor"]["spec"]["endpoints"][0]["authorization"]["credentials"]["name"] == "mine"
