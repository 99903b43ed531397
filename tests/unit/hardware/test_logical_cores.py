import pytest

from neuron_tools import hardware
from neuron_tools.hardware import UnknownTargetError, chosen_lnc


@pytest.mark.parametrize(
    ("target", "size"), [("trn1", 1), ("inf2", 1), ("trn2", 2), ("trn3", 2), ("trn2.48xlarge", 2)]
)
def test_the_default_is_the_generations_own(target: str, size: int) -> None:
    assert chosen_lnc(target, environment={}) == size
    assert hardware.get(target).logical_core_size == size


def test_the_environment_chooses_and_what_is_asked_for_wins() -> None:
    told = {"NEURON_LOGICAL_NC_CONFIG": "1"}
    assert chosen_lnc("trn2", environment=told) == 1
    assert chosen_lnc("trn2", asked=2, environment=told) == 2


def test_the_newer_variable_wins() -> None:
    told = {"NEURON_RT_VIRTUAL_CORE_SIZE": "2", "NEURON_LOGICAL_NC_CONFIG": "1"}
    assert chosen_lnc("trn2", environment=told) == 1
    assert chosen_lnc("trn2", environment={"NEURON_RT_VIRTUAL_CORE_SIZE": "1"}) == 1


def test_the_environment_does_not_join_cores_that_cannot_be_joined() -> None:
    assert chosen_lnc("trn1", environment={"NEURON_LOGICAL_NC_CONFIG": "2"}) == 1


def test_a_wrong_value_is_named() -> None:
    with pytest.raises(UnknownTargetError, match="NEURON_LOGICAL_NC_CONFIG is '4'"):
        chosen_lnc("trn2", environment={"NEURON_LOGICAL_NC_CONFIG": "4"})


def test_trainium2s_instance_has_64_logical_cores_by_default() -> None:
    assert (
        hardware.device("trn2.48xlarge", lnc=chosen_lnc("trn2.48xlarge", environment={})).logical_core_count
        == 64
    )


def test_an_instance_has_its_cores_and_a_generation_names_none() -> None:
    assert hardware.instance_cores("trn2.48xlarge", 2) == 64
    assert hardware.instance_cores("trn2.48xlarge", 1) == 128
    assert hardware.instance_cores("trn1.32xlarge") == 32
    assert hardware.instance_cores("trn2") is None


def test_a_process_is_told_its_cores_by_its_capture_or_by_its_target() -> None:
    assert hardware.told_cores({"NEURON_TOOLS_INSTANCE_CORES": "12", "NEURON_TOOLS_TIMED": "trn1"}) == 12
    assert (
        hardware.told_cores({"NEURON_TOOLS_INSTANCE_CORES": "", "NEURON_TOOLS_TIMED": "inf2.48xlarge"}) == 24
    )
    assert hardware.told_cores({}) is None
