from pathlib import Path

import pytest

from neuron_tools.capture.environment import child_environment
from neuron_tools.capture.options import VARIABLE, CaptureOptions, from_environment, simulated_core
from neuron_tools.errors import UsageError

OPTIONS = CaptureOptions(Path("/tmp/a b\n.nprof"), "trn1", 1, "fixed", 500, ("hbm_bandwidth=2x", "a=b"))


def test_options_reach_the_processes_of_the_command_unchanged():
    assert from_environment(child_environment(OPTIONS)) == OPTIONS


def test_options_are_one_line():
    assert "\n" not in child_environment(OPTIONS)[VARIABLE]


def test_the_recorder_is_loaded_with_torch():
    assert child_environment(OPTIONS)["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "1"


@pytest.mark.parametrize("lnc", [1, 2])
def test_processes_of_the_command_are_told_the_logical_cores(lnc):
    told = child_environment(CaptureOptions(Path("x"), "trn2", lnc), {"NEURON_LOGICAL_NC_CONFIG": "2"})
    assert told["NEURON_LOGICAL_NC_CONFIG"] == str(lnc)


def test_a_process_that_is_not_captured_has_no_options():
    assert from_environment({}) is None


def test_logs_stand_in_the_profile():
    assert OPTIONS.log_directory == OPTIONS.directory / "log"


@pytest.mark.parametrize("wrong", [{"host_clock": "sundial"}, {"lnc": 0}, {"lnc": 3}])
def test_wrong_options_are_one_sentence(wrong):
    with pytest.raises(UsageError) as error:
        CaptureOptions(Path("x"), **wrong)
    assert str(error.value).endswith(".")


def test_settings_change_the_core():
    plain = simulated_core(CaptureOptions(Path("x")))
    changed = simulated_core(CaptureOptions(Path("x"), settings=("hbm_bandwidth=2x",)))
    assert changed.hbm_bandwidth == 2 * plain.hbm_bandwidth


@pytest.mark.parametrize("wrong", [{"target": "trn99"}, {"settings": ("bogus=1",)}, {"settings": ("bogus",)}])
def test_an_unknown_target_or_setting_is_refused(wrong):
    with pytest.raises(UsageError):
        simulated_core(CaptureOptions(Path("x"), **wrong))
