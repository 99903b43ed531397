from __future__ import annotations

import json

import pytest

from tests.unit.neuron_profile.small_capture import Step, loads, program, write_capture

PROGRAM = program([("load", 6)], loads(8, 4096))


@pytest.fixture
def path(tmp_path):
    return write_capture(tmp_path, [PROGRAM], [Step(0)] * 3)


def test_a_row_for_all_changes_and_one_for_each(path, command):
    answer = command("whatif", path, "--set", "dma=0", "--set", "op:load=0.5", "--each")
    assert answer.status == 0
    assert answer.err == ""
    assert [line.split()[0] for line in answer.out.splitlines()[2:]] == ["dma=0", "op:load=0.5", "dma=0,"]


def test_a_name_that_nothing_has_is_told(path, command):
    answer = command("whatif", path, "--set", "op:softmax=0", "--json")
    assert answer.status == 0
    assert answer.err == "Warning: op:softmax=0 changes nothing: nothing of that name ran.\n"
    assert [row["total_gain_ns"] for row in json.loads(answer.out)["gains"]] == [0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("nonsense", "is not understood: write FIGURE=VALUE"),
        ("hbm_bandwith=2x", "a hardware figure such as hbm_bandwidth"),
        ("op:load=-1", "op:load=-1"),
    ],
)
def test_what_is_no_change_is_refused_in_one_line(path, command, change, message):
    answer = command("whatif", path, "--set", change)
    assert answer.status == 2
    assert message in answer.err
    assert answer.err.count("\n") == 1
