"""Layers, programs and collectives: what each takes, and which stands out among those that do the same."""

import pytest

from neuron_profile.analysis.regions import COLLECTIVE, LAYER, PROGRAM, family_of, find_regions, layer_of
from neuron_profile.analysis.time.charges import charge_device_time
from neuron_tools import open_profile
from tests.unit.neuron_explorer.timeline.small_profile import filled


@pytest.mark.parametrize(
    ("module", "layer"),
    [
        ("/model/layers/3/mlp/up", "/model/layers/3"),
        ("/model/layers/3", "/model/layers/3"),
        ("/model/embedding/table", "/model/embedding"),
        ("/model", "/model"),
        ("/stages/0/blocks/1", "/stages/0"),
    ],
)
def test_a_layer_ends_at_the_first_number(module, layer):
    assert layer_of(module) == layer


def test_layers_that_differ_in_their_number_are_one_family():
    assert family_of("/model/layers/3") == family_of("/model/layers/11") == "/model/layers/*"
    assert family_of("/model/head") == "/model/head"


def test_layers_take_all_that_modules_are_charged_with(make_profile):
    with open_profile(make_profile()) as profile:
        layers = [region for region in find_regions(profile) if region.kind == LAYER]
        charges = [charge for charge in charge_device_time(profile).charges if charge.origin.module]
        assert sum(layer.device_ns for layer in layers) == sum(charge.device_ns for charge in charges)
        assert {layer.key: layer.device_ns for layer in layers} == {"/model/a": 130, "/model/b": 20}
        assert {layer.key: layer.backward_ns for layer in layers} == {"/model/a": 0, "/model/b": 20}


def test_a_layer_is_held_against_the_median_of_its_family(make_profile, tiny_tables):
    framework = dict(tiny_tables["FrameworkInstruction"])
    framework["layer"] = ["/model/0", "/model/1", "/model/1"]
    with open_profile(make_profile(tables={**tiny_tables, "FrameworkInstruction": framework})) as profile:
        layers = {region.key: region for region in find_regions(profile) if region.kind == LAYER}
        assert layers["/model/0"].of_median == pytest.approx(100 / 75)
        assert layers["/model/1"].of_median == pytest.approx(50 / 75)


def test_programs_and_collectives_are_regions_too(make_profile, tiny_tables):
    collective = {
        "operation": ["AllReduce", "AllReduce"], "input_size": [64, 64], "start_ts": [1000, 1200],
        "end_ts": [1010, 1230], "process_idx": [0, 0],
    }  # fmt: skip
    executions = {
        "execution_index": [0, 1], "neff_name": ["step", "step"], "executable_idx": [1, 1],
        "execution_start_ts": [1000, 1200], "execution_end_ts": [1040, 1260],
    }  # fmt: skip
    added = {"CcOp": filled("CcOp", collective), "ExecutionInfo": filled("ExecutionInfo", executions)}
    with open_profile(make_profile(tables={**tiny_tables, **added})) as profile:
        found = {region.kind: region for region in find_regions(profile)}
        assert (found[COLLECTIVE].name, found[COLLECTIVE].count) == ("AllReduce of 64 B", 2)
        assert found[COLLECTIVE].device_ns == 40
        assert found[PROGRAM].device_ns == 100
