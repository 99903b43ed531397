"""Containers, manifests and workflows name files, stages and options that exist."""

import json
import re

import jsonschema
import pytest
import yaml

from neuron_explorer.cli import neuron_explorer
from neuron_monitor.cli import neuron_monitor
from tests.integration.project.checkout import ROOT

DEPLOY = ROOT / "monitor/deploy"
MANIFESTS = [*(DEPLOY / "kubernetes").glob("*.yml"), *(ROOT / "explorer_ui/deploy/kubernetes").glob("*.yml")]
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
# What Kubernetes' API reference requires of an object and of the parts that are used here.
OBJECT = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "metadata": {"type": "object", "required": ["name"], "properties": {"name": NAME, "namespace": NAME}}
    },
}
CONTAINER = {
    "type": "object",
    "required": ["name", "image"],
    "properties": {
        "name": NAME,
        "args": {"type": "array", "items": {"type": "string"}},
        "command": {"type": "array", "items": {"type": "string"}},
        "ports": {
            "type": "array",
            "items": {"required": ["containerPort"], "properties": {"containerPort": PORT}},
        },
    },
}
VOLUME = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": NAME,
        "secret": {"type": "object", "required": ["secretName"]},
        "hostPath": {"type": "object", "required": ["path"]},
        "persistentVolumeClaim": {"type": "object", "required": ["claimName"]},
        "emptyDir": {"type": "object"},
    },
    "minProperties": 2,
    "additionalProperties": False,
}
PODS = {
    "required": ["selector", "template"],
    "properties": {
        "selector": {"type": "object", "required": ["matchLabels"]},
        "replicas": {"type": "integer", "minimum": 0},
        "template": {
            "required": ["metadata", "spec"],
            "properties": {
                "spec": {
                    "required": ["containers"],
                    "properties": {
                        "containers": {"type": "array", "minItems": 1, "items": CONTAINER},
                        "volumes": {"type": "array", "items": VOLUME},
                    },
                }
            },
        },
    },
}
SPECS = {
    "DaemonSet": PODS,
    "Deployment": PODS,
    "PersistentVolumeClaim": {
        "required": ["accessModes", "resources"],
        "properties": {
            "accessModes": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "enum": ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"],
                },
            }
        },
    },
    "Service": {
        "required": ["ports"],
        "properties": {
            "ports": {"type": "array", "items": {"required": ["port"], "properties": {"port": PORT}}}
        },
    },
    "ServiceMonitor": {
        "required": ["selector", "endpoints"],
        "properties": {"endpoints": {"type": "array", "minItems": 1, "items": {"required": ["port"]}}},
    },
}


def objects():
    return [found for file in sorted(MANIFESTS) for found in yaml.safe_load_all(file.read_text())]


def of_kind(kind, name="neuron-monitor"):
    (found,) = [each for each in objects() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def pods():
    return [each for each in objects() if each["kind"] in ("DaemonSet", "Deployment")]


@pytest.mark.parametrize("found", objects(), ids=lambda found: f"{found['kind']}-{found['metadata']['name']}")
def test_manifests_keep_the_schema(found):
    jsonschema.validate(found, OBJECT)
    jsonschema.validate(found["spec"], SPECS[found["kind"]])


def test_the_service_monitor_finds_the_pods_and_carries_their_token():
    pods, service, monitor = of_kind("DaemonSet"), of_kind("Service"), of_kind("ServiceMonitor")
    template = pods["spec"]["template"]
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    ports = {port["name"] for container in template["spec"]["containers"] for port in container["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    secrets = {volume["secret"]["secretName"] for volume in template["spec"]["volumes"] if "secret" in volume}
    credentials = [
        endpoint["authorization"]["credentials"]["name"] for endpoint in monitor["spec"]["endpoints"]
    ]
    assert set(credentials) <= secrets


@pytest.mark.parametrize("found", pods(), ids=lambda found: found["metadata"]["name"])
def test_pods_are_selected_and_mount_volumes_that_they_have(found):
    template = found["spec"]["template"]
    assert found["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    mounts = [mount for each in template["spec"]["containers"] for mount in each["volumeMounts"]]
    assert {mount["name"] for mount in mounts} <= {volume["name"] for volume in template["spec"]["volumes"]}
    claims = {each["metadata"]["name"] for each in objects() if each["kind"] == "PersistentVolumeClaim"}
    asked = [volume.get("persistentVolumeClaim") for volume in template["spec"]["volumes"]]
    assert {claim["claimName"] for claim in asked if claim} <= claims


def test_the_explorer_reads_its_token_where_the_secret_is_mounted():
    template = of_kind("Deployment", "neuron-explorer")["spec"]["template"]
    (container,) = template["spec"]["containers"]
    given = neuron_explorer.make_context("neuron-explorer", list(container["args"])).params
    (token,) = [volume["name"] for volume in template["spec"]["volumes"] if "secret" in volume]
    (folder,) = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == token]
    assert given["token_file"].startswith(f"{folder}/")
    assert given["address"] == "0.0.0.0"
    assert {port["containerPort"] for port in container["ports"]} == {given["port"]}
    service = of_kind("Service", "neuron-explorer")["spec"]
    assert service["selector"].items() <= template["metadata"]["labels"].items()
    assert {port["targetPort"] for port in service["ports"]} <= {port["name"] for port in container["ports"]}


def arguments():
    container = of_kind("DaemonSet")["spec"]["template"]["spec"]["containers"][0]
    compose = yaml.safe_load((DEPLOY / "compose.yml").read_text())
    return {
        "kubernetes": container["command"][1:] + container["args"],
        "compose": compose["services"]["monitor"]["command"],
    }


@pytest.mark.parametrize("place", ["kubernetes", "compose"])
def test_the_monitor_takes_the_options_that_it_is_given(place):
    name, *options = arguments()[place]
    command = neuron_monitor.get_command(None, name)
    assert command.make_context(name, options).params["port"] == 8000


def test_the_compose_file_names_what_exists():
    compose = yaml.safe_load((DEPLOY / "compose.yml").read_text())
    files = [config["file"] for config in compose["configs"].values() if "file" in config]
    assert all((DEPLOY / name).is_file() for name in files)
    for service in compose["services"].values():
        assert {config["source"] for config in service.get("configs", [])} <= set(compose["configs"])
        assert set(service.get("depends_on", [])) <= set(compose["services"])
    assert compose["services"]["monitor"]["build"]["target"] in stages()


def stages():
    return set(re.findall(r"^FROM \S+ AS (\w+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE))


def test_the_dockerfile_runs_scripts_and_commands_that_exist():
    text = (ROOT / "Dockerfile").read_text()
    assert all((ROOT / name).is_file() for name in re.findall(r"scripts/\w+\.sh", text))
    scripts = (ROOT / "pyproject.toml").read_text()
    for entry in re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE):
        assert f"\n{json.loads(entry)[0]} = " in scripts


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_workflows_name_scripts_and_stages_that_exist(path):
    found = yaml.safe_load(path.read_text())
    for name in re.findall(r"(?:scripts|\.ci)/\w+(?:\.\w+)?", path.read_text()):
        assert (ROOT / name).is_file()
    for job in found.get("jobs", {}).values():
        assert set(job.get("strategy", {}).get("matrix", {}).get("target", [])) <= stages()


def test_a_release_is_built_for_every_python_that_is_tested():
    workflows = {
        name: yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text())
        for name in ("ci", "release")
    }
    tested = workflows["ci"]["jobs"]["test"]["strategy"]["matrix"]["python"]
    steps = workflows["release"]["jobs"]["build"]["steps"]
    (installed,) = [
        step["with"]["python-version"] for step in steps if "python-version" in step.get("with", {})
    ]
    (built,) = re.findall(r"\$\{PYTHONS:-(.+?)\}", (ROOT / "scripts/release.sh").read_text())
    assert installed.split() == tested
    assert built.split() == [f"python{version}" for version in tested]
    promised = re.findall(
        r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text()
    )
    assert promised == tested


def test_nothing_is_published_before_it_ran_in_a_bare_system():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    assert any("scripts/bare_debian.sh" in step.get("run", "") for step in jobs["bare"]["steps"])
    allowed_to_write = [name for name, job in jobs.items() if "write" in job.get("permissions", {}).values()]
    assert allowed_to_write
    assert all("bare" in jobs[name]["needs"] for name in allowed_to_write)


def test_the_dev_container_makes_targets_that_exist():
    command = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())["postCreateCommand"]
    makefile = (ROOT / "Makefile").read_text()
    for target in command.removeprefix("make ").split():
        assert f"\n{target.replace('.venv', '$(VENV)')}:" in makefile
