import json
from pathlib import Path


def test_facts_and_row_counts(make_profile, command) -> None:
    answer = command("info", make_profile(exit_status=0))
    rows = [line.split() for line in answer.out.splitlines()]
    assert answer.status == 0
    assert ["Target", "trn2,", "LNC", "1"] in rows
    assert ["Complete", "yes"] in rows
    assert ["Instruction", "5"] in rows
    assert ["Process", "0", "python", "train.py", "(process", "77)"] in rows


def test_json_for_programs(make_profile, command) -> None:
    answer = json.loads(command("info", make_profile(complete=False), "--json").out)
    assert answer["complete"] is False
    assert answer["tables"]["FrameworkInstruction"] == 3
    assert answer["command"] == "python train.py --name 'a b'"
    assert answer["processes"][0]["process_id"] == 77


def test_a_damaged_part_is_named(make_profile, command) -> None:
    profile = make_profile()
    (part,) = (profile / "Instruction").glob("*.parquet")
    part.write_bytes(part.read_bytes()[:-20])
    answer = command("info", profile)
    assert answer.status == 0
    assert "Instruction: the part" in " ".join(answer.out.split())


def test_what_is_no_profile_is_said_in_one_line(command, tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none", "does not exist"), (tmp_path, "is no profile")):
        answer = command("info", path)
        assert (answer.status, answer.out) == (1, "")
        assert reason in answer.err
        assert answer.err.startswith("Error: ")
        assert answer.err.count("\n") == 1
