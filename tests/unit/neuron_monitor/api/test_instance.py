import threading
from dataclasses import replace

import pytest

from neuron_monitor.api.instance import Instance, InstanceFacts, read_firmware


@pytest.fixture
def firmware(tmp_path):
    folder = tmp_path / "id"
    folder.mkdir()
    (folder / "sys_vendor").write_text("Amazon EC2\n")
    (folder / "product_name").write_text("trn2.48xlarge\n")
    (folder / "board_asset_tag").write_text("i-0123456789abcdef0\n")
    return folder


def test_the_firmware_tells_type_and_id(firmware):
    assert read_firmware(str(firmware)) == (
        InstanceFacts(type="trn2.48xlarge", id="i-0123456789abcdef0"),
        True,
    )


def test_another_machine_is_unknown_and_asks_nobody(tmp_path):
    def ask(known):
        raise AssertionError

    assert Instance(str(tmp_path), ask).facts() == InstanceFacts("unknown", "unknown")


def test_nothing_waits_for_the_metadata_service(firmware):
    answered, done = threading.Event(), threading.Event()

    def ask(known):
        answered.wait(60)
        done.set()
        return replace(known, region="us-east-2")

    instance = Instance(str(firmware), ask)
    assert instance.facts().region == ""
    answered.set()
    done.wait(60)
    while not instance.facts().region:
        pass
    assert instance.facts().region == "us-east-2"


def test_a_service_that_does_not_answer_is_told_in_the_error(firmware):
    def ask(known):
        raise OSError("timed out")

    instance = Instance(str(firmware), ask)
    while not instance.facts().error:
        pass
    assert "timed out" in instance.facts().error
    assert instance.facts().type == "trn2.48xlarge"


def test_a_simulated_device_is_on_a_simulated_instance(firmware):
    facts = Instance(str(firmware), lambda known: known).facts("trn1.2xlarge")
    assert (facts.type, facts.id) == ("trn1.2xlarge", "simulated")


def test_a_simulated_instance_stays_when_its_tree_goes(tmp_path):
    instance = Instance(str(tmp_path))
    assert instance.facts("trn2.48xlarge") == InstanceFacts("trn2.48xlarge", "simulated")
    assert instance.facts() == InstanceFacts("trn2.48xlarge", "simulated")


def test_whoever_needs_all_facts_waits_for_the_answer(firmware):
    asked = threading.Event()

    def ask(known):
        asked.wait(60)
        return replace(known, region="us-east-2")

    instance = Instance(str(firmware), ask)
    asked.set()
    instance.wait(60)
    assert instance.facts().region == "us-east-2"
