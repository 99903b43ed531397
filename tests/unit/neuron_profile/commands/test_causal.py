import json

from tests.unit.neuron_profile.small_capture import FILE, Step, loads, program, write_capture

PROGRAM = program([("load", 6)], loads(8, 4096))


def test_a_table_of_lines(tmp_path, command):
    answer = command("causal", write_capture(tmp_path, [PROGRAM], [Step(0)] * 3))
    assert answer.status == 0
    assert "50% faster" in answer.out
    assert f"{FILE}:6" in answer.out


def test_json(tmp_path, command):
    path = write_capture(tmp_path, [PROGRAM], [Step(0)] * 3)
    found = json.loads(command("causal", path, "--level", "operation", "--json").out)
    assert [row["what"] for row in found["rows"]] == ["load"]
    assert found["left_out"] == 0


def test_a_profile_without_programs_says_so(make_profile, command):
    answer = command("causal", make_profile())
    assert answer.status == 1
    assert "no programs that ran" in answer.err
