"""The catalogue knows every generation, chip and instance, and where each figure comes from."""

import pytest

from neuron_tools import hardware
from neuron_tools.errors import UsageError


@pytest.mark.parametrize(
    ("target", "name", "chip", "teraflops"),
    [
        ("inf1", "NeuronCore-v1", "Inferentia", 16),
        ("trn1", "NeuronCore-v2", "Trainium", 92),
        ("trn1n", "NeuronCore-v2", "Trainium", 92),
        ("inf2", "NeuronCore-v2", "Inferentia2", 92),
        ("trn2", "NeuronCore-v3", "Trainium2", 79),
        ("trn3", "NeuronCore-v4", "Trainium3", 79),
    ],
)
def test_each_target_has_its_core_and_published_peak(target, name, chip, teraflops):
    core = hardware.get(target)
    assert (core.name, core.chip, core.target) == (name, chip, target)
    assert core.peak_tensor_flops / 1e12 == pytest.approx(teraflops, rel=0.03)


def test_early_chips_are_their_generation():
    assert hardware.get("trn3pre") == hardware.get("trn3")


def test_sram_sizes_are_the_published_ones():
    sizes = {target: hardware.get(target).sbuf_bytes >> 20 for target in ("trn1", "trn2", "trn3")}
    assert sizes == {"trn1": 24, "trn2": 28, "trn3": 32}
    assert hardware.get("trn2").psum_bytes == 2 << 20
    assert hardware.get("trn2").psum_bank_bytes == 2048


def test_an_instance_type_names_its_target():
    core = hardware.get("trn2.48xlarge")
    assert core == hardware.get("trn2")
    assert hardware.get("trn1.2xlarge").instance_type == "trn1.2xlarge"


def test_a_device_counts_cores_by_lnc():
    device = hardware.device("trn2")
    assert device.physical_core_count == 128
    assert device.logical_core_count == 64
    assert hardware.device("trn2", lnc=1).logical_core_count == 128
    assert device.chip.hbm_bytes == 96 << 30


def test_lnc_decides_how_much_hbm_a_core_has():
    assert hardware.get("trn2").hbm_bytes == 24 << 30
    assert hardware.get("trn2", lnc=1).hbm_bytes == 12 << 30


@pytest.mark.parametrize("call", [lambda: hardware.get("tpu"), lambda: hardware.get("trn1", lnc=2)])
def test_unknown_targets_are_usage_errors_that_list_the_known(call):
    with pytest.raises(UsageError, match=r"use"):
        call()


def test_the_error_for_an_unknown_target_lists_targets_and_instances():
    with pytest.raises(UsageError, match=r"trn2.*trn2\.48xlarge"):
        hardware.get("tpu")


@pytest.mark.parametrize("target", hardware.targets())
def test_every_figure_has_a_source_and_estimates_say_why(target):
    for name in hardware.figure_names():
        figure = hardware.figure(target, name)
        assert figure.source
        assert figure.value == getattr(hardware.get(target), name)
        assert not figure.is_estimate or figure.note


def test_conflicting_pages_are_both_recorded():
    figure = hardware.figure("trn2", "hbm_bandwidth")
    assert figure.value == 716e9
    assert len(figure.also) == 2


def test_relative_speeds_by_dtype():
    core = hardware.get("trn3")
    assert core.tensor_speed("f32") == 0.25
    assert core.tensor_speed("bf16") == 1
    assert core.peak_flops("mxfp8") == pytest.approx(315e12, rel=0.01)
    assert hardware.get("trn2").peak_flops("f8e4m3") == pytest.approx(158e12, rel=0.01)


@pytest.mark.parametrize("name", list(hardware.instances()))
def test_every_instance_has_a_known_chip_and_target(name):
    device = hardware.device(name)
    assert device.instance.name == name
    assert device.chip.name == device.instance.chip
