import json

import pytest

from neuron_tools.profile import verify
from neuron_tools.profile.verify import Breach


def test_no_breach(make_profile, command) -> None:
    answer = command("verify", make_profile(tables={}))
    assert (answer.status, answer.out) == (0, "No breach in 0 rows.\n")


def test_breaches_are_listed_and_fail_the_command(make_profile, command, tiny_tables) -> None:
    backwards = {name: list(values) for name, values in tiny_tables["Instruction"].items()}
    backwards["start_ts"][0], backwards["end_ts"][0] = 50, 40
    profile = make_profile(tables={"Instruction": backwards})
    answer = command("verify", profile)
    assert answer.status == 1
    assert "Instruction" in answer.out
    found = json.loads(command("verify", profile, "--json").out)
    assert found["holds"] is False
    assert {breach["table"] for breach in found["breaches"]} >= {"Instruction"}


def test_json_without_breaches(make_profile, command, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = command("verify", make_profile(tables={}), "--json")
    assert (answer.status, json.loads(answer.out)) == (0, {"holds": True, "breaches": []})


def test_every_field_of_a_breach_is_shown(make_profile, command, monkeypatch: pytest.MonkeyPatch) -> None:
    breach = Breach("DmaUsage", "7", "fractions lie in [0, 1]", "at most 1", "1.5")
    monkeypatch.setattr(verify, "verify", lambda profile: [breach])
    text = " ".join(command("verify", make_profile(tables={})).out.split())
    assert all(word in text for word in ("DmaUsage", "7", "fractions lie in [0, 1]", "at most 1", "1.5"))
