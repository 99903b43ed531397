import pytest

import neuron_tools
from neuron_profile.analysis.comparison.difference import compare
from neuron_profile.analysis.comparison.operations import operation_totals
from neuron_profile.analysis.time.charges import charge_device_time


@pytest.fixture
def tiny_path(make_profile):
    return make_profile()


def opened(path):
    return neuron_tools.open_profile(path)


def test_a_profile_does_not_differ_from_itself(tiny_path):
    with opened(tiny_path) as one, opened(tiny_path) as other:
        difference = compare(one, other)
    assert {delta.change for delta in difference.deltas} == {"same"}
    assert difference.base_device_ns == difference.new_device_ns == 200


def test_totals_are_whole_and_add_up(tiny_path):
    with opened(tiny_path) as profile:
        totals, device_ns = operation_totals(profile, charge_device_time(profile))
    assert device_ns == 200
    assert sum(total.device_ns for total in totals.values()) == 200
    assert {(key.module, key.operation): total.device_ns for key, total in totals.items()} == {
        ("/model/a", "aten::addmm"): 100,
        ("/model/a", "aten::mul"): 30,
        ("/model/b", "aten::mul"): 20,
        ("", "(no operation)"): 50,
    }


def test_deltas_add_up_to_the_difference_of_the_totals(tiny_path, make_profile, tiny_tables):
    def longer(tables):
        events = tables["SystemProfileEvents"]
        ends = [
            end + 37 if start == 1200 else end for start, end in zip(events["start_ts"], events["end_ts"])
        ]
        return {**tables, "SystemProfileEvents": {**events, "end_ts": ends}}

    changed = make_profile("longer.nprof", longer(tiny_tables))
    with opened(tiny_path) as base, opened(changed) as new:
        difference = compare(base, new)
    assert difference.new_device_ns - difference.base_device_ns == 37
    assert sum(delta.delta_ns for delta in difference.deltas) == 37
    assert difference.deltas[0].key.operation == "(no operation)"
